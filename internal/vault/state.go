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

// A state is the state that a replica reports of itself.
type state struct {
	Initialized bool
	Sealed      bool
	Standby     bool
	Version     string
	ClusterName string `json:"cluster_name"`
	// HeardLeader reports whether a standby has recently heard from the leader, to which it forwards requests; nil if
	// Vault does not report it.
	HeardLeader *bool `json:"ha_connection_healthy"`
	// Time is the replica's clock, in seconds since 1970; 0 if Vault does not report it.
	Time int64 `json:"server_time_utc"`

	leader
}

// now returns the replica's time, on which all clients agree, or this machine's if the replica reports none.
func (s state) now() time.Time {
	if s.Time == 0 {
		return time.Now()
	}
	return time.Unix(s.Time, 0)
}

// clock returns the replica's current time, or this machine's if the replica does not answer.
func (r *replica) clock(ctx context.Context) time.Time {
	s, _ := r.readState(ctx)
	return s.now()
}

// A leader is what a replica reports about the leader. Since is the start of its leadership, which shows an election
// that the same replica won again.
type leader struct {
	HA      bool   `json:"ha_enabled"`
	Self    bool   `json:"is_self"` // this replica leads
	Address string `json:"leader_address"`
	Cluster string `json:"leader_cluster_address"`
	Since   string `json:"active_time"`
}

// healthPath has status 200 in every state of the replica, so that other statuses are errors.
const healthPath = "sys/health?standbyok=true&perfstandbyok=true" +
	"&sealedcode=200&uninitcode=200&drsecondarycode=200&haunhealthycode=200"

// readState reads the replica's state, and the leader if the replica is unsealed.
func (r *replica) readState(ctx context.Context) (state, error) {
	open := *r // these paths need no token, and exist in the root namespace only
	open.token, open.namespace = "", ""
	var s state
	if err := open.send(ctx, "GET", healthPath, nil, &s); err != nil {
		return s, err
	}
	if !s.Initialized || s.Sealed {
		return s, nil
	}
	err := open.send(ctx, "GET", "sys/leader", nil, &s.leader)
	return s, err
}

// checkReady returns an error if the replica cannot be measured in this state.
func (s state) checkReady(address string) error {
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

// readStates reads the states of all replicas at the same time.
func readStates(ctx context.Context, all []*replica) ([]state, []error) {
	states, errs := make([]state, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() { states[i], errs[i] = r.readState(ctx) })
	}
	group.Wait()
	return states, errs
}

// A watcher checks the replicas' states during a run. It collects changes, which make the run invalid, and warnings.
type watcher struct {
	all    []*replica
	before []state
	end    context.CancelFunc
	ended  chan struct{}

	changes    []string
	unanswered map[string]int // checks that a replica did not answer, by its address
	unheard    map[string]int // checks in which a standby had not recently heard from the leader, by its address
	checks     int
}

// watchPause is the time between two checks.
const watchPause = 500 * time.Millisecond

// watch starts to check the replicas every [watchPause], until close.
func watch(ctx context.Context, all []*replica, before []state) *watcher {
	ctx, end := context.WithCancel(ctx)
	w := &watcher{all: all, before: before, end: end, ended: make(chan struct{}),
		unanswered: map[string]int{}, unheard: map[string]int{}}
	go func() {
		defer close(w.ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(watchPause):
			}
			w.check(ctx)
		}
	}()
	return w
}

// check checks all replicas once. A replica that does not answer under load is no change.
func (w *watcher) check(ctx context.Context) {
	states, errs := readStates(ctx, w.all)
	if ctx.Err() != nil {
		return // cancelled during the check
	}
	w.checks++
	for i, r := range w.all {
		if errs[i] != nil {
			w.unanswered[r.address]++
			continue
		}
		if heard := states[i].HeardLeader; heard != nil && !*heard {
			w.unheard[r.address]++
		}
		w.addChange(r.address, change(w.before[i], states[i]))
	}
}

// addChange adds a change of a replica, unless it is empty or was added before.
func (w *watcher) addChange(address, what string) {
	if text := address + " " + what; what != "" && !slices.Contains(w.changes, text) {
		w.changes = append(w.changes, text)
	}
}

// change describes the change that makes a run invalid, empty if there is none. The text follows a replica's address.
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

// close ends the periodic checks, checks the replicas once more without load, and returns what makes the run invalid
// and the warnings.
func (w *watcher) close(ctx context.Context) (invalid, warnings []result.Warning) {
	w.end()
	<-w.ended
	states, errs := readStates(ctx, w.all)
	for i, r := range w.all {
		if errs[i] != nil {
			w.addChange(r.address, fmt.Sprintf("does not say how it is after the run: %v", errs[i]))
			continue
		}
		w.addChange(r.address, change(w.before[i], states[i]))
	}
	for _, r := range w.all {
		if n := w.unanswered[r.address]; n > 0 {
			warnings = append(warnings, warning(result.StateUnknown,
				"Vault at %s did not answer %d of %d looks at its state within %v", r.address, n, w.checks, askTime))
		}
	}
	for _, r := range w.all {
		if n := w.unheard[r.address]; n > 0 {
			warnings = append(warnings, warning(result.LeaderUnheard, "Vault at %s had not heard of its leader lately at "+
				"%d of %d looks, as happens under more load than it can carry", r.address, n, w.checks))
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
