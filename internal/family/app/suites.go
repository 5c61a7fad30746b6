package app

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/result"
)

// window is the window of all runs, the same as in published measurements.
const window = 10 * time.Second

// suites returns the built-in suites.
func suites() []family.Suite {
	vault := family.Suite{Name: "app:vault", About: "Vault's transit engine: latency at a fixed rate, and the highest " +
		"rate with a p99 up to 100 ms", Duration: window}
	vault.Cases = append(cases(result.Primary, "encrypt:rate=100", "decrypt:rate=100", "sign:rate=100", "verify:rate=100"),
		append(cases(result.Exploratory, "mix:rate=100"), cases(result.Primary, "mix:knee=100ms")...)...)
	published := family.Suite{
		Name:     "app:vault-published",
		About:    "Vault as published measurements have it: 1300 clients in a closed loop, also with our mix",
		Duration: window,
		Cases:    append(cases(result.Primary, "published"), cases(result.Exploratory, "mix:clients=1300")...),
	}
	return []family.Suite{vault, published}
}

func cases(role result.Role, names ...string) []family.Case {
	return family.Cases(role, func(name string) (family.Workload, error) { return Parse("vault/"+name, "") }, names...)
}

// defaultLoad is the load of a description without loads.
const defaultLoad = "rate=100"

// fileSuite returns a suite with one primary case for each load of each description in a file. Every error wraps
// webapp.ErrDescription and has the place in the file.
func fileSuite(name string, data []byte) (family.Suite, error) {
	entries, err := parseFile(name, data)
	if err != nil {
		return family.Suite{}, err
	}
	s := family.Suite{Name: "app:" + strings.ReplaceAll(filepath.Base(name), ",", "_"),
		About: "the requests of " + name, Duration: window}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		e := entries[key]
		text, err := e.definition()
		if err != nil {
			return family.Suite{}, fmt.Errorf("%w: %s: %w", webapp.ErrDescription, name, err)
		}
		loads := e.Loads
		if len(loads) == 0 {
			loads = []string{defaultLoad}
		}
		for _, load := range loads {
			w, err := Parse("http/"+key+":"+load, text)
			if err != nil {
				return family.Suite{}, fmt.Errorf("%w: %s: %s: loads: %w", webapp.ErrDescription, name, key, err)
			}
			s.Cases = append(s.Cases, family.Case{Workload: w, Role: result.Primary})
		}
	}
	return s, nil
}
