package webapp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

func good() Description {
	return Description{URL: "http://127.0.0.1:80", Requests: []Request{{Name: "a", Path: "/"}}}
}

func TestValidate(t *testing.T) {
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	service := good()
	service.URL, service.Service = "", "shop.default:8080"
	if err := service.Validate(); err != nil || service.url() != "http://shop.default.svc:8080" {
		t.Errorf("%s, %v", service.url(), err)
	}
	service.CA = "ca.pem"
	if service.url() != "https://shop.default.svc:8080" {
		t.Error(service.url())
	}
	for name, test := range map[string]struct {
		spoil func(*Description)
		want  string
	}{
		"scheme":     {func(d *Description) { d.URL = "ftp://x" }, "url:"},
		"password":   {func(d *Description) { d.URL = "http://u:p@x" }, "without path, user or password"},
		"path":       {func(d *Description) { d.URL = "http://x/y" }, "url:"},
		"two places": {func(d *Description) { d.Service = "shop.default:80" }, "service: there is a url too"},
		"service":    {func(d *Description) { d.URL, d.Service = "", "shop:80" }, "is not NAME.NAMESPACE:PORT"},
		"address":    {func(d *Description) { d.Addresses = []string{"x"} }, "HOST:PORT"},
		"http":       {func(d *Description) { d.HTTP = 3 }, "neither 1 nor 2"},
		"reconnect":  {func(d *Description) { d.HTTP, d.Reconnect = 2, true }, "reconnect"},
		"none":       {func(d *Description) { d.Requests = nil }, "there are 0"},
		"timeout":    {func(d *Description) { d.Timeout = "5" }, "timeout"},
		"name":       {func(d *Description) { d.Requests = append(d.Requests, d.Requests[0]) }, "requests[1]"},
		"weight":     {func(d *Description) { d.Requests[0].Weight = -1 }, "weight"},
		"method":     {func(d *Description) { d.Requests[0].Method = "get it" }, "capital"},
		"no slash":   {func(d *Description) { d.Requests[0].Path = "x" }, "slash"},
		"blank":      {func(d *Description) { d.Requests[0].Path = "/a b" }, "blanks"},
		"smuggle":    {func(d *Description) { d.Requests[0].Path = "/\r\nX: y" }, "path"},
		"template":   {func(d *Description) { d.Requests[0].Body = "{{user}}" }, "{{user}}"},
		"digits":     {func(d *Description) { d.Requests[0].Body = "{{random 0}}" }, "random hexadecimal digits"},
		"field":      {func(d *Description) { d.Requests[0].Header = map[string]string{"A:": "x"} }, "can't be sent"},
		"split": {func(d *Description) { d.Requests[0].Header = map[string]string{"A": "x\r\nB: y"} },
			"can't be sent"},
		"host": {func(d *Description) { d.Requests[0].Header = map[string]string{"host": "x"} }, "generator's own"},
		"secret twice": {func(d *Description) { d.Requests[0].Secrets = map[string]Secret{"A": {Env: "x", File: "y"}} },
			"from env or from file"},
		"secret never": {func(d *Description) { d.Requests[0].Secrets = map[string]Secret{"A": {}} },
			"from env or from file"},
		"status":        {func(d *Description) { d.Requests[0].Status = []int{100} }, "status 100"},
		"connections":   {func(d *Description) { d.Connections = -1 }, "connections"},
		"header braces": {func(d *Description) { d.Requests[0].Header = map[string]string{"A": "{{x}}"} }, "{{x}}"},
	} {
		d := good()
		test.spoil(&d)
		if err := d.Validate(); !errors.Is(err, ErrDescription) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; wanted %q", name, err, test.want)
		}
	}
}

// TestBracesNextToPlaceholders checks that braces on both sides of a placeholder are text.
func TestBracesNextToPlaceholders(t *testing.T) {
	c, err := compile("{{{n}}{")
	if got := string(c.render(7, nil)); err != nil || got != "{7{" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestSource checks that the mix has the given weights and is the same for the same seed, and that placeholders have
// different values.
func TestSource(t *testing.T) {
	d := good()
	d.Requests = []Request{
		{Name: "often", Weight: 3, Path: "/often"},
		{Name: "seldom", Path: "/{{n}}/{{random 5}}", Method: "PUT",
			Header: map[string]string{"X-Id": "{{uuid}}"}, Body: "fixed"},
	}
	s, err := d.Source(7, map[string]map[string]string{"often": {"Authorization": "Bearer x"}})
	if err != nil {
		t.Fatal(err)
	}
	again, _ := d.Source(7, nil)
	other, _ := d.Source(8, nil)
	const all = 10000
	var often, differs int
	for n := range uint64(all) {
		r := s.Request(n)
		if r.Kind != again.Request(n).Kind || r.Kind == 1 && r.Path != again.Request(n).Path {
			t.Fatalf("operation %d differs with the same seed", n)
		}
		if r.Kind != other.Request(n).Kind {
			differs++
		}
		if r.Kind == 0 {
			often++
			continue
		}
		if !regexp.MustCompile(fmt.Sprintf(`^/%d/[0-9a-f]{5}$`, n)).MatchString(r.Path) ||
			r.Method != "PUT" || string(r.Body) != "fixed" {
			t.Fatalf("%+v", r)
		}
		uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		if !uuid.MatchString(r.Header[0].Value) {
			t.Fatalf("%q is no UUID", r.Header[0].Value)
		}
	}
	// Three quarters, within five standard errors of a binomial share.
	if se := math.Sqrt(0.75 * 0.25 / all); math.Abs(float64(often)/all-0.75) > 5*se {
		t.Errorf("%d of %d are the request with three quarters of the weight", often, all)
	}
	if differs == 0 {
		t.Error("another seed has the same order")
	}
	r := s.Request(0)
	for n := uint64(0); r.Kind != 0; n++ {
		r = s.Request(n)
	}
	if len(r.Header) != 1 || r.Header[0].Value != "Bearer x" {
		t.Errorf("%+v", r.Header)
	}
}

func TestSecrets(t *testing.T) {
	d := good()
	env := func(name string) string { return map[string]string{"TOKEN": "s3cret", "BAD": "a\nb"}[name] }
	file := func(name string) ([]byte, error) {
		if name == "f" {
			return []byte("from file\n"), nil
		}
		return nil, os.ErrNotExist
	}
	d.Requests[0].Secrets = map[string]Secret{"Authorization": {Env: "TOKEN", Prefix: "Bearer "}, "X-File": {File: "f"}}
	got, err := d.ReadSecrets(family.Environment{Getenv: env, ReadFile: file})
	if err != nil || got["a"]["Authorization"] != "Bearer s3cret" || got["a"]["X-File"] != "from file" {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []Secret{{Env: "NONE"}, {File: "none"}, {Env: "BAD"}} {
		d.Requests[0].Secrets = map[string]Secret{"A": s}
		if _, err := d.ReadSecrets(family.Environment{Getenv: env, ReadFile: file}); !errors.Is(err, ErrDescription) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestRun checks a whole run against a server that checks the requests.
func TestRun(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/write" && (string(body) == "" || r.Header.Get("Authorization") != "Bearer x") {
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprint(w, "fine")
	}))
	defer s.Close()
	d := Description{URL: s.URL, Connections: 2, Requests: []Request{
		{Name: "read", Weight: 2, Path: "/read", Contains: "fine"},
		{Name: "write", Method: "POST", Path: "/write", Body: "{{random 8}}"},
	}}
	c := Config{
		Description: d, Secrets: map[string]map[string]string{"write": {"Authorization": "Bearer x"}}, Seed: 1,
		Load: httpload.Load{Rate: 200, Window: 500 * time.Millisecond},
	}
	if load, err := c.loadConfig(); err != nil || load.Distress == nil {
		t.Errorf("nothing stops the load on an application in distress: %v", err)
	}
	r, err := Run(t.Context(), c)
	if err != nil || r.Total.OK != 100 || r.Kinds[0].OK < 50 || r.Kinds[1].OK < 20 {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"", "x{{n}}y", "{{random 3}}{{uuid}}",
		"{{", "{{random 99999999999999}}", "{{n}", "}}{{n}}{{"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := good()
		d.Requests[0].Body = text
		if d.Validate() != nil || strings.Contains(text, "random") {
			return
		}
		s, err := d.Source(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(s.Request(5).Body); !strings.Contains(text, "{{") && got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}
