package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// progressModes are the values of --progress.
var progressModes = []string{"auto", "tty", "plain", "json", "none"}

// newProgress returns what shows the events of an experiment on stderr, in one of the modes.
func newProgress(mode string, s Streams) (func(runner.Event), error) {
	if mode == "auto" {
		mode = "plain"
		if s.Terminal {
			mode = "tty"
		}
	}
	switch mode {
	case "tty":
		return (&ttyProgress{out: s.Err, last: map[string]string{}}).show, nil
	case "plain":
		return (&plainProgress{out: s.Err, now: time.Now}).show, nil
	case "json":
		lines := json.NewEncoder(s.Err)
		return func(e runner.Event) { _ = lines.Encode(e) }, nil
	case "none":
		return func(runner.Event) {}, nil
	}
	return nil, oneOf("--progress", mode, progressModes)
}

// ttyProgress keeps two lines on a terminal up to date: where the experiment is, and the last value.
type ttyProgress struct {
	out   io.Writer
	drawn bool
	last  map[string]string // by target, of the case that is being measured
	names []string
	study string // that case
}

// width of a progress line: a terminal of 80 columns, less one so that it never wraps.
const width = 79

func (p *ttyProgress) show(e runner.Event) {
	switch e.Kind {
	case runner.RunStarted:
		if e.Case != p.study {
			p.study, p.names, p.last = e.Case, nil, map[string]string{}
		}
	case runner.RunDone:
		p.note(e)
	case runner.RunInvalid:
		p.line(fmt.Sprintf("invalid: %s on %s, block %d: %s", e.Case, e.Target, e.Block, e.Reason))
	case runner.SiteFailed:
		p.line(noSite(e))
	case runner.CaseDecided:
		p.line(decided(e))
	case runner.NotMeasured:
		p.line(fmt.Sprintf("not measured: %s on %s: %s", e.Case, e.Target, e.Reason))
	case runner.Finished:
		p.erase()
		return
	}
	p.draw(e)
}

func (p *ttyProgress) note(e runner.Event) {
	if _, seen := p.last[e.Target]; !seen {
		p.names = append(p.names, e.Target)
	}
	p.last[e.Target] = mainValue(e)
}

// line prints something that stays, above the lines that change.
func (p *ttyProgress) line(text string) {
	p.erase()
	fmt.Fprintln(p.out, text)
}

func (p *ttyProgress) erase() {
	if p.drawn {
		perform(p.out, eraseTwoLines)
		p.drawn = false
	}
}

func (p *ttyProgress) draw(e runner.Event) {
	var values []string
	for _, name := range p.names {
		values = append(values, name+" "+p.last[name])
	}
	most := ""
	if e.AtMost {
		most = "≤ "
	}
	first := fmt.Sprintf("block %d of %s%d  %s %d/%d  %s elapsed, %s%s to go",
		max(e.Block, 1), most, e.Blocks, bar(e.Done, e.Runs), e.Done, e.Runs, prose.Clock(e.Elapsed),
		most, prose.Clock(e.Remaining))
	p.erase()
	fmt.Fprintf(p.out, "%s\n%s", prose.Cut(first, width), prose.Cut(p.study+"  "+strings.Join(values, "  "), width))
	p.drawn = true
}

// most is what stands before a number that is the most that it can be.
func most(e runner.Event) string {
	if e.AtMost {
		return "at most "
	}
	return ""
}

func noSite(e runner.Event) string {
	return fmt.Sprintf("nothing to measure in on %s, block %d: %s", e.Target, e.Block, e.Reason)
}

func decided(e runner.Event) string {
	return fmt.Sprintf("decided: %s, after %d of at most %d blocks", e.Case, e.Block, e.Blocks)
}

func bar(done, all int) string {
	const cells = 20
	full := 0
	if all > 0 {
		full = min(cells, done*cells/all)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "]"
}

// plainProgress writes a line with the time of day for each event that is worth one.
type plainProgress struct {
	out io.Writer
	now func() time.Time
}

func (p *plainProgress) show(e runner.Event) {
	var text string
	switch e.Kind {
	case runner.Planned:
		text = fmt.Sprintf("%s%d blocks, %d runs, about %s", most(e), e.Blocks, e.Runs, prose.Clock(e.Remaining))
	case runner.BlockStarted:
		text = fmt.Sprintf("block %d of %s%d: %d of %d runs done, %s elapsed, %s%s to go",
			e.Block, most(e), e.Blocks, e.Done, e.Runs, prose.Clock(e.Elapsed), most(e), prose.Clock(e.Remaining))
	case runner.RunDone:
		text = fmt.Sprintf("block %d  %s  %s  %s", e.Block, e.Case, e.Target, mainValue(e))
	case runner.RunInvalid:
		text = fmt.Sprintf("block %d  %s  %s  invalid: %s", e.Block, e.Case, e.Target, e.Reason)
	case runner.SiteFailed:
		text = noSite(e)
	case runner.CaseDecided:
		text = decided(e)
	case runner.NotMeasured:
		text = fmt.Sprintf("not measured: %s on %s: %s", e.Case, e.Target, e.Reason)
	case runner.Finished:
		text = fmt.Sprintf("%s after %s", e.Reason, prose.Clock(e.Elapsed))
	default:
		return
	}
	fmt.Fprintf(p.out, "%s %s\n", p.now().Format(time.TimeOnly), text)
}

func mainValue(e runner.Event) string {
	if e.Value == nil {
		return "-"
	}
	return unit.Format(e.Value.Number, e.Value.Unit)
}
