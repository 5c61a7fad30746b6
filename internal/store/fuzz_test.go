package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func FuzzExperiment(f *testing.F) {
	good, err := json.Marshal(experiment())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(bytes.Replace(good, []byte("v2"), []byte("v3"), 1))
	f.Add([]byte("{\n\"schema\":\"knotmeter/experiment/v2\",\n\"seed\":-1}"))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseExperiment("e.json", data)
		if err != nil {
			checkError(t, "e.json", err)
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseExperiment("e.json", again); err != nil {
			t.Errorf("what was read cannot be read again: %v\n%s", err, again)
		}
	})
}

func FuzzSwitching(f *testing.F) {
	f.Add([]byte(`{"schema":"knotmeter/switch/v1","switch":1,"target":"lab:native","block":1}`))
	f.Add([]byte(`{"schema":"knotmeter/switch/v1","session":2}`))
	f.Add([]byte(`{"schema":"knotmeter/switch/v2","switch":-1}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := Results{Results: result.Results{Experiment: experiment()}}
		if err := r.parseSwitching("s.json", data); err != nil {
			checkError(t, "s.json", err)
			return
		}
		for _, s := range r.Switches {
			if s.Number != 1 || s.Failed == "" || checkSwitch(s, r.Experiment) != nil {
				t.Errorf("%+v", s)
			}
		}
	})
}

func FuzzRuns(f *testing.F) {
	var all []byte
	for id := range 2 {
		r, _ := run(id + 1)
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		all = append(append(all, line...), '\n')
	}
	f.Add(all)
	f.Add(all[:len(all)-1])
	f.Add(all[:len(all)/4])
	f.Add(bytes.ReplaceAll(all, []byte("0002"), []byte("../x")))
	f.Add(bytes.ReplaceAll(all, []byte("run/v2"), []byte("run/v12")))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read := Results{Results: result.Results{Experiment: experiment()}}
		err := read.parseRuns("r.ndjson", bytes.NewReader(data))
		runs, size, torn := read.Runs, read.runsSize, len(read.Warnings) > 0
		if size < 0 || size > int64(len(data)) {
			t.Fatalf("size %d of %d bytes", size, len(data))
		}
		if err != nil {
			checkError(t, "r.ndjson", err)
			return
		}
		if torn != (size < int64(len(data))) {
			t.Errorf("torn is %v after %d of %d bytes", torn, size, len(data))
		}
		if bytes.IndexByte(data[size:], '\n') >= 0 || len(runs) != bytes.Count(data[:size], []byte{'\n'}) {
			t.Errorf("%d runs in %d bytes of %q", len(runs), size, data)
		}
		for _, r := range runs {
			if filepath.Base(r.ID) != r.ID {
				t.Errorf("run %q is a path", r.ID)
			}
		}
	})
}

func FuzzSites(f *testing.F) {
	all := []byte(oneSite(`,"setup":1.5`) + oneSite(`,"site":2`))
	f.Add(all)
	f.Add(all[:len(all)-1])
	f.Add(all[:len(all)/4])
	f.Add(bytes.ReplaceAll(all, []byte(`"site":2`), []byte(`"site":1`)))
	f.Add(bytes.ReplaceAll(all, []byte("site/v1"), []byte("site/v12")))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read := Results{Results: result.Results{Experiment: experiment()}}
		err := read.parseSites("s.ndjson", bytes.NewReader(data))
		sites, size, torn := read.Sites, read.sitesSize, len(read.Warnings) > 0
		if size < 0 || size > int64(len(data)) {
			t.Fatalf("size %d of %d bytes", size, len(data))
		}
		if err != nil {
			checkError(t, "s.ndjson", err)
			return
		}
		if torn != (size < int64(len(data))) || len(sites) != bytes.Count(data[:size], []byte{'\n'}) {
			t.Errorf("%d sites in %d bytes of %q, torn is %v", len(sites), size, data, torn)
		}
		numbers := map[int]bool{}
		for _, s := range sites {
			if s.Number < 1 || numbers[s.Number] {
				t.Errorf("site %d is there twice, or has no number", s.Number)
			}
			numbers[s.Number] = true
		}
	})
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte(`[{"name":"kernel","value":"6.18"}]`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseFacts("f.json", data); err != nil {
			checkError(t, "f.json", err)
		}
	})
}

// checkError checks that an error is one of the documented ones and begins with the file.
func checkError(t *testing.T, file string, err error) {
	t.Helper()
	if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrOlder) {
		t.Errorf("%v is neither ErrFormat nor ErrNewer nor ErrOlder", err)
	}
	if !strings.HasPrefix(err.Error(), file) {
		t.Errorf("%v does not begin with the file", err)
	}
}

func FuzzSafeName(f *testing.F) {
	for _, s := range []string{"lab:vxlan", "..", "a/b", "%2E", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		safe := SafeName(name)
		if back, err := url.PathUnescape(safe); err != nil || back != name {
			t.Errorf("%q became %q, which is %q, %v", name, safe, back, err)
		}
		if name != "" && (filepath.Base(safe) != safe || strings.HasPrefix(safe, ".")) {
			t.Errorf("%q became %q", name, safe)
		}
	})
}
