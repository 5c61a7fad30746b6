package store

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/knotmeter/knotmeter/internal/result"
)

// parseSites reads the whole lines of sites.ndjson, and returns how many bytes they are and whether there is more after
// the last newline.
func parseSites(name string, in io.Reader, e result.Experiment) (
	sites []result.Site, size int64, torn bool, err error,
) {
	seen := map[int]int{}
	size, torn, err = eachLine(name, in, func(number int, line []byte) error {
		var s result.Site
		err := json.Unmarshal(line, &s)
		if err != nil || s.Schema != result.SiteSchema {
			return brokenLine(name, number, line, result.SiteSchema, err)
		}
		if first, again := seen[s.Number]; again {
			return fmt.Errorf("%s:%d: %w: site %d is in line %d already", name, number, ErrFormat, s.Number, first)
		}
		if err := checkSite(s, e); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
		seen[s.Number] = number
		sites = append(sites, s)
		return nil
	})
	return sites, size, torn, err
}
