package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
)

// A state is what watches have told of the run's objects, and when.
type state struct {
	watches []*apiserver.Watch
	mu      sync.Mutex
	pods    map[string]pod
	// ready are the addresses that Services send requests to, by EndpointSlice, and changed is when they last became
	// others.
	ready   map[string][]string
	changed time.Time
	added   map[string]time.Time // other objects, and when they came or went
	removed map[string]time.Time
	rollout rollout
}

// A pod is one as the API server has it.
type pod struct {
	ip                 string
	addressed, isReady time.Time // when it had its address, and when it was ready first; zero: not yet
	running, ready     bool
	waits              string // what for
}

// A rollout is how far a Deployment is.
type rollout struct {
	ObservedGeneration int `json:"observedGeneration"`
	Replicas           int `json:"replicas"`
	UpdatedReplicas    int `json:"updatedReplicas"`
	AvailableReplicas  int `json:"availableReplicas"`
}

// watched are the resources that are watched besides pods.
var watched = map[dynamics.Change]string{
	dynamics.PolicyDeny: "networkpolicy", dynamics.PolicyAllow: "networkpolicy",
	dynamics.PolicyEstablished: "networkpolicy", dynamics.PolicyFirst: "networkpolicy",
	dynamics.EndpointReady: "endpointslice", dynamics.EndpointGone: "endpointslice",
	dynamics.ServiceProgramming: "endpointslice", dynamics.Rollout: "deployment",
}

// watchState begins to watch.
func watchState(ctx context.Context, r *run) (*state, error) {
	s := &state{pods: map[string]pod{}, ready: map[string][]string{}, added: map[string]time.Time{},
		removed: map[string]time.Time{}}
	see := map[string]func(apiserver.Event, time.Time){"pod": s.seePod, "endpointslice": s.seeSlice,
		"networkpolicy": s.seeObject, "deployment": s.seeDeployment}
	for _, resource := range []string{"pod", watched[r.Workload.Change]} {
		if resource == "" {
			continue
		}
		w, err := r.Watch(ctx, r.inventory(resource), func(e apiserver.Event, at time.Time) {
			s.mu.Lock()
			defer s.mu.Unlock()
			see[resource](e, at)
		})
		if err != nil {
			s.close()
			return nil, fmt.Errorf("watch %ss: %w", resource, err)
		}
		s.watches = append(s.watches, w)
	}
	return s, nil
}

func (s *state) close() {
	for _, w := range s.watches {
		w.Close()
	}
}

// failed is why a watch ended before its time.
func (s *state) failed() error {
	var errs []error
	for _, w := range s.watches {
		errs = append(errs, w.Err())
	}
	return errors.Join(errs...)
}

func (s *state) seePod(e apiserver.Event, at time.Time) {
	name := e.Object.Metadata.Name
	if e.Type == "DELETED" {
		delete(s.pods, name)
		return
	}
	var status apiserver.PodStatus
	if json.Unmarshal(e.Object.Status, &status) != nil {
		return
	}
	p := s.pods[name]
	p.running, p.ready, p.waits = status.Started(), status.IsTrue("Ready"), status.WaitReason()
	if p.ip = status.PodIP; p.ip != "" && p.addressed.IsZero() {
		p.addressed = at
	}
	if p.ready && p.isReady.IsZero() {
		p.isReady = at
	}
	s.pods[name] = p
}

func (s *state) seeSlice(e apiserver.Event, at time.Time) {
	var ready []string
	for _, of := range e.Object.Endpoints {
		if e.Type != "DELETED" && (of.Conditions.Ready == nil || *of.Conditions.Ready) {
			ready = append(ready, of.Addresses...)
		}
	}
	name := e.Object.Metadata.Name
	if !slices.Equal(s.ready[name], ready) {
		s.changed = at
	}
	s.ready[name] = ready
}

func (s *state) seeObject(e apiserver.Event, at time.Time) {
	switch e.Type {
	case "ADDED":
		s.added[e.Object.Metadata.Name] = at
	case "DELETED":
		s.removed[e.Object.Metadata.Name] = at
	}
}

func (s *state) seeDeployment(e apiserver.Event, _ time.Time) {
	if e.Type != "DELETED" {
		_ = json.Unmarshal(e.Object.Status, &s.rollout)
	}
}

// pod is one by its name.
func (s *state) pod(name string) pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[name]
}

// endpoints are the addresses that requests are sent to, and when they last became others.
func (s *state) endpoints() (addresses []string, changed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ready := range s.ready {
		addresses = append(addresses, ready...)
	}
	slices.Sort(addresses)
	return addresses, s.changed
}

// told is when an object came, and when it went.
func (s *state) told(name string) (added, removed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added[name], s.removed[name]
}

// rolled is how far the Deployment is.
func (s *state) rolled() rollout {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rollout
}
