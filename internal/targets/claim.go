package targets

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// A Claim records which experiment of which user uses a cluster or machine. It exists while the experiment runs, so
// that other experiments notice it: on a cluster as an annotation (targets/kube), on a machine as a locked file.
type Claim struct {
	Experiment string    `json:"experiment"` // its ID
	By         string    `json:"by"`         // user@machine
	Since      time.Time `json:"since"`
	Version    string    `json:"version"` // of the program
}

// Claim returns the claim of a plan by the user of this process, from now on.
func (p Plan) Claim(now time.Time) Claim {
	return Claim{Experiment: p.Experiment, By: currentUser(), Since: now.UTC().Truncate(time.Second), Version: p.Version}
}

// currentUser returns the user of this process and its machine, as user@machine.
func currentUser() string {
	name, machine := fmt.Sprintf("uid %d", os.Getuid()), "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		machine = h
	}
	return name + "@" + machine
}

// Text returns the claim as it is stored on a target.
func (c Claim) Text() string {
	text, _ := json.Marshal(c) // strings and a time cannot fail
	return string(text)
}

// maxClaim is the maximum number of bytes of a claim that are read.
const maxClaim = 4096

// maxClaimColumns is the maximum width of each text of a claim, in terminal columns.
const maxClaimColumns = 100

// ParseClaim parses a claim that another user may have written. It cuts long texts and escapes control characters.
func ParseClaim(text string) (Claim, error) {
	var c Claim
	if err := json.Unmarshal([]byte(text[:min(len(text), maxClaim)]), &c); err != nil {
		return Claim{}, fmt.Errorf("not a claim: %w", err)
	}
	for _, s := range []*string{&c.Experiment, &c.By, &c.Version} {
		*s = prose.Cut(prose.Plain(*s), maxClaimColumns)
	}
	return c, nil
}

// String describes the claim in a sentence.
func (c Claim) String() string {
	if c.Experiment == "" {
		return "an experiment that does not say whose it is"
	}
	return fmt.Sprintf("the experiment %s of %s, since %s",
		c.Experiment, c.By, c.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// ErrBusy is the error of a target that another experiment uses.
var ErrBusy = errors.New("in use")

// CheckClaims checks the claims found on a cluster or machine; place names it in messages. Claims of other experiments
// are an error that Is [ErrBusy], or with Share one warning for each experiment. Claims of the plan's own experiment
// are ignored.
func (p Plan) CheckClaims(place string, found []Claim) (warnings []string, err error) {
	found = slices.SortedFunc(slices.Values(found), func(a, b Claim) int { return a.Since.Compare(b.Since) })
	seen := map[[2]string]bool{}
	var others []string
	for _, c := range found {
		if who := [2]string{c.Experiment, c.By}; c.Experiment != p.Experiment && !seen[who] {
			seen[who] = true
			others = append(others, c.String())
		}
	}
	slices.Sort(others)
	switch {
	case len(others) == 0:
		return nil, nil
	case !p.Share:
		return nil, fmt.Errorf("%s is %w by %s: the two would disturb each other; "+
			"wait for its end, or measure all the same with --share", place, ErrBusy, strings.Join(others, " and "))
	}
	for _, o := range others {
		warnings = append(warnings, fmt.Sprintf("%s was shared with %s: the two may have disturbed each other", place, o))
	}
	return warnings, nil
}
