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

// A Claim says who measures where. An experiment leaves it on the clusters and the machine that it uses, for as long as
// it runs, so that another one there learns of it: on a cluster as an annotation (target/kube), on a machine as a file
// that is locked.
type Claim struct {
	Experiment string    `json:"experiment"` // its ID
	By         string    `json:"by"`         // user@machine
	Since      time.Time `json:"since"`
	Version    string    `json:"version"` // of the program
}

// Claim is that of a plan by the user of this process, from now on.
func (p Plan) Claim(now time.Time) Claim {
	return Claim{Experiment: p.Experiment, By: me(), Since: now.UTC().Truncate(time.Second), Version: p.Version}
}

// me is the user of this process and its machine.
func me() string {
	name, machine := fmt.Sprintf("uid %d", os.Getuid()), "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		machine = h
	}
	return name + "@" + machine
}

// Text is the claim as it is left on a target.
func (c Claim) Text() string {
	text, _ := json.Marshal(c) // strings and a time cannot fail
	return string(text)
}

// maxClaim is the most that is read of a claim, in bytes.
const maxClaim = 4096

// claimColumns is how many columns of each text of a claim are shown.
const claimColumns = 100

// ParseClaim reads a claim that someone else may have written: nothing of it is trusted to be short, or fit for a
// terminal.
func ParseClaim(text string) (Claim, error) {
	var c Claim
	if err := json.Unmarshal([]byte(text[:min(len(text), maxClaim)]), &c); err != nil {
		return Claim{}, fmt.Errorf("not a claim: %w", err)
	}
	for _, s := range []*string{&c.Experiment, &c.By, &c.Version} {
		*s = prose.Cut(prose.Plain(*s), claimColumns)
	}
	return c, nil
}

func (c Claim) String() string {
	if c.Experiment == "" {
		return "an experiment that does not say whose it is"
	}
	return fmt.Sprintf("the experiment %s of %s, since %s",
		c.Experiment, c.By, c.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// ErrBusy is that another experiment uses a target.
var ErrBusy = errors.New("in use")

// CheckClaims says what the claims of a place mean for a plan: those of other experiments are an error, or warnings where the
// plan says to share the place with them. An experiment that claims it several times, for each of its targets, is one.
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
