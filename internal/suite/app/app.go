// Package app is the suites of applications: Vault's transit engine, and whatever a user describes.
//
// What the cases tell, and what they do not:
//
//   - vault/encrypt, decrypt, sign and verify at a fixed rate tell how long a request takes from the time it was planned for,
//     with Vault far from its limit. They tell nothing of what Vault can carry.
//   - vault/mix is a quarter of each; with a knee it tells the highest rate at which the 99th percentile stays below that
//     limit and nothing fails.
//   - vault/published is the mix as it was measured for publications: 1300 clients, each of which waits for its answer. Vault
//     is saturated all the while, so that the mean latency is 1300 over the rate: a throughput by another name.
//   - http/NAME is what its description says.
//
// None tells what storage a busy Vault needs, since transit writes nothing, nor what clients far away see.
package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/appfile"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/suite"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/webapp"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// window of all runs, as of the published ones.
const window = 10 * time.Second

// Suites are all of them but those that a file makes.
func Suites() []suite.Suite {
	vault := suite.Suite{Name: "app:vault", About: "Vault's transit engine: latency at a fixed rate, and the highest rate with a p99 up to 100 ms", Duration: window}
	for _, name := range []string{"encrypt:rate=100", "decrypt:rate=100", "sign:rate=100", "verify:rate=100"} {
		vault.Cases = append(vault.Cases, newCase("vault/"+name, result.Primary))
	}
	vault.Cases = append(vault.Cases, newCase("vault/mix:rate=100", result.Exploratory), newCase("vault/mix:knee=100ms", result.Primary))
	published := suite.Suite{Name: "app:vault-published", About: "Vault as published measurements have it: 1300 clients in a closed loop", Duration: window}
	published.Cases = append(published.Cases, newCase("vault/published", result.Primary))
	return []suite.Suite{vault, published}
}

func newCase(name string, role result.Role) suite.Case {
	w, err := workload.ParseApp(name, "")
	if err != nil {
		panic("a case of a suite is none: " + err.Error())
	}
	return suite.Case{Path: target.App, Workload: w, Role: role}
}

// defaultLoad is how a description is asked that does not say it.
const defaultLoad = "rate=100"

// File makes cases of each description in a file, one for each load, all of them primary. Every error Is
// webapp.ErrDescription and says where.
func File(name string, data []byte) (suite.Suite, error) {
	entries, err := appfile.ParseFile(name, data)
	if err != nil {
		return suite.Suite{}, err
	}
	s := suite.Suite{Name: "app:" + strings.ReplaceAll(filepath.Base(name), ",", "_"), About: "the requests of " + name, Duration: window}
	for _, e := range entries {
		text, err := e.Text()
		if err != nil {
			return suite.Suite{}, fmt.Errorf("%w: %s: %w", webapp.ErrDescription, name, err)
		}
		loads := e.Loads
		if len(loads) == 0 {
			loads = []string{defaultLoad}
		}
		for _, load := range loads {
			w, err := workload.ParseApp("http/"+e.Name+":"+load, text)
			if err != nil {
				return suite.Suite{}, fmt.Errorf("%w: %s: %s: loads: %w", webapp.ErrDescription, name, e.Name, err)
			}
			s.Cases = append(s.Cases, suite.Case{Path: target.App, Workload: w, Role: result.Primary})
		}
	}
	return s, nil
}
