package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/knotmeter/knotmeter/internal/report/chart"
)

// browser returns the path of Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed, so that no page can be rendered")
	return ""
}

// chromium renders a file without a network and returns its output and the messages of the console.
func chromium(t *testing.T, path string, flags ...string) (out, complaints string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars",
		"--enable-logging=stderr", "--virtual-time-budget=5000",
		"--user-data-dir=" + t.TempDir(),
	}, flags...)
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, browser(t), append(args, "file://"+path)...)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, stderr.String())
	}
	for l := range strings.Lines(stderr.String()) {
		if strings.Contains(l, ":CONSOLE") {
			complaints += l
		}
	}
	return stdout.String(), complaints
}

// An inspection is the report of the checker in a page.
type inspection struct {
	Width    int      `json:"width"`  // width of the window
	Scroll   int      `json:"scroll"` // width of the content
	Wide     []string `json:"wide"`   // elements that exceed the window
	Small    []string `json:"small"`  // texts that are too small
	Contrast []string `json:"contrast"`
	Mouse    []string `json:"mouse"`   // elements that only a mouse can use
	Covered  []string `json:"covered"` // texts of the first screen that overlap a bar
	Drawn    int      `json:"drawn"`   // series that are zoomable
	Series   int      `json:"series"`
	Figures  int      `json:"figures"` // that can be saved
	Saved    []string `json:"saved"`   // file names of the save buttons
	PNG      int      `json:"png"`     // size of the first figure as PNG, bytes
	Errors   []string `json:"errors"`
}

// checker is a script that inspects a page. Contrast is that of WCAG 2.2, section 1.4.3, of texts on plain backgrounds.
const checker = `
const found = {errors: []};
addEventListener("error", e => found.errors.push(String(e.message)));
addEventListener("securitypolicyviolation", e =>
  found.errors.push("policy: " + e.violatedDirective + " " + e.blockedURI));
const name = e => e.tagName + "." + (e.getAttribute("class") || "") + " " + (e.textContent || "").trim().slice(0, 40);
const numbers = text => (text.match(/[\d.]+/g) || []).map(Number);
const luminance = rgb => {
  const [r, g, b] = rgb.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = e => {
  for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (numbers(c)[3] !== 0) return numbers(c);
  }
  return [255, 255, 255];
};
const hidden = e => !e.checkVisibility() || getComputedStyle(e).clipPath !== "none";
const inspect = () => {
  const root = document.scrollingElement;
  found.width = innerWidth;
  found.scroll = root.scrollWidth;
  found.wide = []; found.small = []; found.contrast = [];
  for (const e of document.querySelectorAll("body *")) {
    if (hidden(e) || e.closest(".scroll, .skip, .shapes, pre")) continue;
    const box = e.getBoundingClientRect();
    if (box.right > innerWidth + 1 && box.width > 0) found.wide.push(name(e));
  }
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || hidden(e) || e.closest("script, style, title, desc, .skip")) continue;
    const style = getComputedStyle(e);
    if (parseFloat(style.fontSize) < 9.5) found.small.push(name(e));
    const ink = luminance(numbers(e instanceof SVGElement ? style.fill : style.color)), paper = luminance(ground(e));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) found.contrast.push(ratio.toFixed(2) + " " + name(e));
  }
  // Everything that reacts to a mouse is reachable by keyboard, and each baseline shows only its own changes.
  found.mouse = [...document.querySelectorAll("body *")].filter(e => getComputedStyle(e).cursor === "pointer" &&
    !e.closest("a[href], button, summary, label, input")).map(name);
  for (const choice of [...document.querySelectorAll("input[type=radio]")].reverse()) {
    choice.click();
    const shown = [...document.querySelectorAll(".option")].filter(e => e.checkVisibility());
    const right = shown.length === 1 && shown[0] === choice.labels[0].nextElementSibling;
    if (!right) found.errors.push("choice " + choice.id);
  }
  found.covered = [];
  for (const bar of document.querySelectorAll(".hero td > .plot")) {
    const b = bar.getBoundingClientRect();
    for (const e of bar.parentElement.children) {
      const a = e.getBoundingClientRect();
      if (e !== bar && a.bottom > b.top && a.top < b.bottom) found.covered.push(name(e));
    }
  }
  found.drawn = document.querySelectorAll(".series.drawn").length;
  found.series = document.querySelectorAll(".series").length;
  for (const k of ["wide", "small", "contrast", "mouse", "covered"]) found[k] = found[k].slice(0, 8);
  copies().finally(() => parent.postMessage(found, "*"));
};
// Record the names of saved files, and check that they contain the drawing.
found.saved = [];
const blobs = new Map();
const object = URL.createObjectURL;
URL.createObjectURL = blob => { const url = object.call(URL, blob); blobs.set(url, blob); return url; };
HTMLAnchorElement.prototype.click = function() {
  blobs.get(this.href).text().then(text => {
    if (!text.startsWith("<svg") || !text.includes("<text")) found.errors.push(this.download + " is " + text);
  }, e => found.errors.push(String(e)));
  found.saved.push(this.download);
};
const copies = async () => {
  const figures = [...document.querySelectorAll("[data-copy]")];
  found.figures = figures.length;
  for (const f of figures) {
    const drawing = new DOMParser().parseFromString(knotmeter.drawing(f), "image/svg+xml");
    if (drawing.querySelector("parsererror") || !drawing.querySelector("text")) found.errors.push("drawing " + name(f));
    f.querySelector(".copy button").click();
    const numbers = f.querySelector("table");
    if (numbers && !knotmeter.markdown(f).includes("|")) found.errors.push("Markdown " + name(f));
  }
  await new Promise(done => setTimeout(done, 300));
  if (figures.length) found.png = (await knotmeter.png(figures[0])).size;
};
addEventListener("load", () => setTimeout(() => {
  document.querySelectorAll("details").forEach(d => d.open = true);
  document.querySelectorAll(".series").forEach(s => {
    s.scrollIntoView({behavior: "instant"});
    dispatchEvent(new Event("scroll")); // without frames the browser sends none
  });
  setTimeout(inspect, 500);
}, 200));
`

// pageWithChecker returns a page with the checker in it, which the page's policy then allows.
func pageWithChecker(t *testing.T, in Input) string {
	t.Helper()
	text := render(t, func(b *strings.Builder) error { return writeHTML(b, in) })
	hash := sha256.Sum256([]byte(checker))
	source := " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if strings.Contains(text, "; script-src") {
		text = strings.Replace(text, "; script-src", "; script-src"+source, 1)
	} else {
		text = strings.Replace(text, "default-src &#39;none&#39;", "default-src &#39;none&#39;; script-src"+source, 1)
	}
	return strings.Replace(text, "<style>", "<script>"+checker+"</script><style>", 1)
}

// harness returns a page with a frame of each width, because a browser's own window cannot be as narrow as a phone. Its
// title becomes the JSON of the inspections.
func harness(page string, widths []int) string {
	var b strings.Builder
	b.WriteString(`<!doctype html><meta charset="utf-8"><title>waiting</title><script>
const all = [];
addEventListener("message", e => { all.push(e.data); document.title = JSON.stringify(all); });
</script>`)
	for _, w := range widths {
		fmt.Fprintf(&b, `<iframe width="%d" height="900" style="border:0" srcdoc="%s"></iframe>`, w, html.EscapeString(page))
	}
	return b.String()
}

// writePage writes a page into a file and returns its path.
func writePage(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// inspectPage renders a page in windows of these widths and returns the inspections.
func inspectPage(t *testing.T, page string, widths []int, flags ...string) []inspection {
	t.Helper()
	dom, complaints := chromium(t, writePage(t, harness(page, widths)),
		append(flags, "--dump-dom", "--window-size=1800,1000")...)
	start, end := strings.Index(dom, "<title>"), strings.Index(dom, "</title>")
	var found []inspection
	title := html.UnescapeString(dom[start+len("<title>") : max(end, start+len("<title>"))])
	if json.Unmarshal([]byte(title), &found) != nil || len(found) != len(widths) {
		t.Fatalf("of %d windows not all were inspected; the title is %q", len(widths), title)
	}
	slices.SortFunc(found, func(a, b inspection) int { return a.Width - b.Width })
	for i, f := range found {
		if complaints != "" {
			found[i].Errors = append(f.Errors, "console: "+complaints)
		}
		if f.Width != widths[i] {
			t.Errorf("a window is %d wide, not %d", f.Width, widths[i])
		}
	}
	return found
}

// TestPageInABrowser renders pages at the widths of a phone and a desktop, light and dark, with everything unfolded.
func TestPageInABrowser(t *testing.T) {
	browser(t)
	if testing.Short() {
		t.Skip("rendering pages takes a while")
	}
	schemes := map[string]string{"light": "1", "dark": "0"}
	for name, in := range inputs(t) {
		page := pageWithChecker(t, in)
		var files []string
		for _, f := range drawnFiles(t, in) {
			files = append(files, f.Name)
		}
		files = files[1:] // without the card
		slices.Sort(files)
		for scheme, number := range schemes {
			if scheme == "dark" && name != "network" && name != "doubtful" {
				continue // these two have every colour
			}
			t.Run(name+"-"+scheme, func(t *testing.T) {
				for _, f := range inspectPage(t, page, []int{400, 1280}, "--blink-settings=preferredColorScheme="+number) {
					f.judge(t)
					slices.Sort(f.Saved)
					if !slices.Equal(f.Saved, files) {
						t.Errorf("the buttons save %q, want %q", f.Saved, files)
					}
				}
			})
		}
	}
}

// judge fails the test for every fault of an inspection.
func (f inspection) judge(t *testing.T) {
	t.Helper()
	if f.Scroll > f.Width || len(f.Wide) > 0 {
		t.Errorf("in a window of %d the page is %d wide; too wide are %q", f.Width, f.Scroll, f.Wide)
	}
	if len(f.Small)+len(f.Contrast)+len(f.Mouse)+len(f.Covered)+len(f.Errors) > 0 {
		t.Errorf("in a window of %d, too small: %q, too pale: %q, without keys: %q, on a bar: %q, errors: %q",
			f.Width, f.Small, f.Contrast, f.Mouse, f.Covered, f.Errors)
	}
	if f.Figures > 0 && f.PNG < 1000 {
		t.Errorf("in a window of %d, the first of %d figures is a PNG of %d bytes", f.Width, f.Figures, f.PNG)
	}
	if f.Drawn != f.Series {
		t.Errorf("in a window of %d, %d of %d series are zoomable", f.Width, f.Drawn, f.Series)
	}
}

// textChecker is a script that finds texts of figures that exceed an edge or overlap.
const textChecker = `
const faults = [];
const drawn = (root, where) => {
  const edge = root.getBoundingClientRect();
  const all = [...root.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]);
  all.forEach(([text, a], i) => {
    if (a.left < edge.left || a.right > edge.right || a.top < edge.top || a.bottom > edge.bottom) {
      faults.push(where + ": cut " + text);
    }
    for (const [other, b] of all.slice(0, i)) {
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 1.5 && y > 3.5) faults.push(where + ": " + text + " lies on " + other);
    }
  });
};
addEventListener("load", () => {
  document.querySelectorAll("body > div").forEach(e => drawn(e.firstElementChild, e.title));
  document.title = JSON.stringify(faults);
});
`

// faults renders files in a browser and returns the faults of their texts.
func faults(t *testing.T, files []File) (found []string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<!doctype html><meta charset="utf-8"><title>waiting</title><script>` + textChecker + "</script>")
	for _, f := range files {
		b.WriteString(`<div title="` + html.EscapeString(f.Name) + `">` + f.Text + "</div>")
	}
	dom, _ := chromium(t, writePage(t, b.String()), "--dump-dom", "--window-size=1800,1000")
	title, _, _ := strings.Cut(dom[strings.Index(dom, "<title>")+len("<title>"):], "</title>")
	if err := json.Unmarshal([]byte(html.UnescapeString(title)), &found); err != nil {
		t.Fatalf("%v: %.300s", err, title)
	}
	return found
}

// TestFilesInABrowser renders figures as files and checks that no text is cut off or overlaps another, even if it is
// long.
func TestFilesInABrowser(t *testing.T) {
	browser(t)
	if testing.Short() {
		t.Skip("rendering figures takes a while")
	}
	all := map[string]Input{"hostile": poison(small(), strings.Repeat(" a-long-name", 20)),
		"words": poison(network(t), strings.Repeat("WWW", 60))}
	for name, in := range inputs(t) {
		all[name] = in
	}
	for name, in := range all {
		t.Run(name, func(t *testing.T) {
			if found := faults(t, drawnFiles(t, in)); len(found) > 0 {
				t.Errorf("%d faults, such as %.8q", len(found), found[:min(len(found), 8)])
			}
		})
	}
	s := chart.NewSheet(400, "faulty")
	s.Text("reaches over the edge", 380, 40, chart.Start, bodyFont, 400)
	s.Text("under", 40, 80, chart.Start, bodyFont, 400)
	s.Text("above", 40, 81, chart.Start, bodyFont, 400)
	if found := faults(t, []File{{"faulty", s.File(100)}}); len(found) != 2 {
		t.Errorf("the faults of a figure are not found: %q", found)
	}
}

// TestInspectionFindsFaults checks the checker with a faulty page.
func TestInspectionFindsFaults(t *testing.T) {
	browser(t)
	page := "<!doctype html><script>" + checker + `</script><body style="margin:0"><p style="width:900px">wide</p>` +
		`<p style="color:#ccc">pale</p><p style="font-size:8px;cursor:pointer">small</p>` +
		`<script>throw new Error("broken")</script>`
	f := inspectPage(t, page, []int{400})[0]
	if f.Scroll != 900 || len(f.Wide) != 1 || len(f.Contrast) != 1 || len(f.Small) != 1 || len(f.Mouse) != 1 ||
		len(f.Errors) != 2 {
		t.Errorf("the faults of a page are not found: %+v", f)
	}
}

// TestPageOnPaper prints a page and checks that the output is a complete PDF of few pages.
func TestPageOnPaper(t *testing.T) {
	browser(t)
	if testing.Short() {
		t.Skip("rendering pages takes a while")
	}
	path := writePage(t, render(t, func(b *strings.Builder) error { return writeHTML(b, network(t)) }))
	out := filepath.Join(t.TempDir(), "report.pdf")
	if _, complaints := chromium(t, path, "--print-to-pdf="+out, "--no-pdf-header-footer"); complaints != "" {
		t.Error(complaints)
	}
	pdf, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf[len(pdf)-32:], []byte("%%EOF")) {
		t.Errorf("%d bytes are no PDF", len(pdf))
	}
	if pages := bytes.Count(pdf, []byte("/Type /Page\n")) + bytes.Count(pdf, []byte("/Type /Page /")); pages > 30 {
		t.Errorf("the page of a small experiment takes %d sheets", pages)
	}
}
