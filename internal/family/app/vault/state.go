package vault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A state is what a replica says of itself.
type state struct {
	Initialized bool
	Sealed      bool
	Standby     bool
	Version     string
	ClusterName string `json:"cluster_name"`
	// Touch is whether a standby has lately heard of the leader, to whom it passes requests on; nil where Vault does not
	// say.
	Touch *bool `json:"ha_connection_healthy"`
	// Time is its clock, in seconds.
	Time int64 `json:"server_time_utc"`

	leader
}

// now is the replica's time, so that all machines that ask it agree; this one's where it does not say.
func (s state) now() time.Time {
	if s.Time == 0 {
		return time.Now()
	}
	return time.Unix(s.Time, 0)
}

// clock is a replica's time.
func (r *replica) clock(ctx context.Context) time.Time {
	s, _ := r.look(ctx) // else this machine's
	return s.now()
}

// A leader is what a replica says of who leads. Since is when that one began, which tells an election apart that the
// same one won again.
type leader struct {
	HA      bool   `json:"ha_enabled"`
	Self    bool   `json:"is_self"`
	Address string `json:"leader_address"`
	Cluster string `json:"leader_cluster_address"`
	Since   string `json:"active_time"`
}

// healthPath answers with 200 whatever the replica's state, so that an error is one.
const healthPath = "sys/health?standbyok=true&perfstandbyok=true" +
	"&sealedcode=200&uninitcode=200&drsecondarycode=200&haunhealthycode=200"

// look asks a replica how it is.
func (r *replica) look(ctx context.Context) (state, error) {
	open := *r // these paths need no token, and exist in the root namespace only
	open.token, open.space = "", ""
	var s state
	if err := open.ask(ctx, "GET", healthPath, nil, &s); err != nil {
		return s, err
	}
	if !s.Initialized || s.Sealed {
		return s, nil
	}
	err := open.ask(ctx, "GET", "sys/leader", nil, &s.leader)
	return s, err
}

// able says why a replica can't be measured, nil if it can.
func (s state) able(address string) error {
	switch {
	case !s.Initialized:
		return fmt.Errorf("%w: %s is not initialised: run 'vault operator init' there, or have one deployed (vault=deploy)",
			ErrVault, address)
	case s.Sealed:
		return fmt.Errorf("%w: %s is sealed: unseal it ('vault operator unseal')", ErrVault, address)
	case s.Address == "" && s.HA:
		return fmt.Errorf("%w: %s knows of no leader: see its log, and 'vault operator raft list-peers'", ErrVault, address)
	}
	return nil
}

// roll asks all replicas at once.
func roll(ctx context.Context, all []*replica) ([]state, []error) {
	states, errs := make([]state, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() { states[i], errs[i] = r.look(ctx) })
	}
	group.Wait()
	return states, errs
}

// A watcher looks at the replicas while they are asked. It says what makes the run invalid, and what else it saw.
type watcher struct {
	all    []*replica
	before []state
	end    context.CancelFunc
	ended  chan struct{}

	changes []string
	silent  map[string]int // looks that a replica did not answer
	apart   map[string]int // looks at which a standby had not heard of the leader lately
	looks   int
}

// watchPause lies between two looks.
const watchPause = 500 * time.Millisecond

func watch(ctx context.Context, all []*replica, before []state) *watcher {
	ctx, end := context.WithCancel(ctx)
	w := &watcher{all: all, before: before, end: end, ended: make(chan struct{}),
		silent: map[string]int{}, apart: map[string]int{}}
	go func() {
		defer close(w.ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(watchPause):
			}
			w.once(ctx)
		}
	}()
	return w
}

// once looks at all replicas. One that does not answer under load is not one that changed.
func (w *watcher) once(ctx context.Context) {
	states, errs := roll(ctx, w.all)
	if ctx.Err() != nil {
		return // given up half way
	}
	w.looks++
	for i, r := range w.all {
		if errs[i] != nil {
			w.silent[r.address]++
			continue
		}
		if now := states[i].Touch; now != nil && !*now {
			w.apart[r.address]++
		}
		w.saw(r.address, change(w.before[i], states[i]))
	}
}

// saw keeps what changed of a replica, once; nothing is no change.
func (w *watcher) saw(address, what string) {
	if text := address + " " + what; what != "" && !slices.Contains(w.changes, text) {
		w.changes = append(w.changes, text)
	}
}

// change says what is different in a way that a run can't have, in words that a replica's address stands before.
func change(before, now state) string {
	switch {
	case now.Sealed && !before.Sealed:
		return "was sealed during the run"
	case !now.Initialized:
		return "is not initialised any more"
	case now.Address == "" && before.Address != "":
		return "lost its leader during the run"
	case now.Address != before.Address || now.Cluster != before.Cluster:
		return fmt.Sprintf("has another leader: %s instead of %s", now.Address, before.Address)
	case now.Standby != before.Standby:
		return "changed between leader and standby"
	case now.Self && now.Since != before.Since:
		return fmt.Sprintf("was elected again (at %s)", now.Since)
	case now.Version != before.Version:
		return fmt.Sprintf("changed its version from %s to %s", before.Version, now.Version)
	}
	return ""
}

// close looks once more, when nobody is asked any more, and returns what makes the run invalid and what to be warned
// of.
func (w *watcher) close(ctx context.Context) (invalid, warnings []result.Warning) {
	w.end()
	<-w.ended
	states, errs := roll(ctx, w.all)
	for i, r := range w.all {
		if errs[i] != nil {
			w.saw(r.address, fmt.Sprintf("does not say how it is after the run: %v", errs[i]))
			continue
		}
		w.saw(r.address, change(w.before[i], states[i]))
	}
	for _, r := range w.all {
		if n := w.silent[r.address]; n > 0 {
			warnings = append(warnings, warning(result.StateUnknown,
				"Vault at %s did not answer %d of %d looks at its state within %v", r.address, n, w.looks, askTime))
		}
	}
	for _, r := range w.all {
		if n := w.apart[r.address]; n > 0 {
			warnings = append(warnings, warning(result.LeaderUnheard, "Vault at %s had not heard of its leader lately at "+
				"%d of %d looks, as happens under more load than it can carry", r.address, n, w.looks))
		}
	}
	for _, c := range w.changes {
		invalid = append(invalid, warning(result.StateChanged, "Vault at %s", strings.TrimSpace(c)))
	}
	return invalid, warnings
}

func warning(code result.Code, format string, a ...any) result.Warning {
	return result.Warning{Code: code, Text: fmt.Sprintf(format, a...)}
}
