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

// A state holds what watches reported about the run's objects, and when.
type state struct {
	watches []*apiserver.Watch
	mu      sync.Mutex
	pods    map[string]pod
	// ready holds the addresses to which Services send requests, by EndpointSlice; changed is when they last changed.
	ready   map[string][]string
	changed time.Time
	added   map[string]time.Time // when other objects were created, by name
	removed map[string]time.Time // when other objects were deleted, by name
	rollout rollout
}

// A pod is the state of a pod.
type pod struct {
	ip             string
	addressed      time.Time // when it first had an address; zero: not yet
	running, ready bool
	waitReason     string // why it does not start
}

// A rollout is the progress of a Deployment.
type rollout struct {
	ObservedGeneration int `json:"observedGeneration"`
	Replicas           int `json:"replicas"`
	UpdatedReplicas    int `json:"updatedReplicas"`
	AvailableReplicas  int `json:"availableReplicas"`
}

// watched holds the resource that each change watches besides pods, if any.
var watched = map[dynamics.Change]string{
	dynamics.PolicyDeny: "networkpolicy", dynamics.PolicyAllow: "networkpolicy",
	dynamics.PolicyEstablished: "networkpolicy", dynamics.PolicyFirst: "networkpolicy",
	dynamics.EndpointReady: "endpointslice", dynamics.EndpointGone: "endpointslice",
	dynamics.ServiceProgramming: "endpointslice", dynamics.Rollout: "deployment",
}

// watchState starts the watches of a run.
func watchState(ctx context.Context, r *run) (*state, error) {
	s := &state{pods: map[string]pod{}, ready: map[string][]string{}, added: map[string]time.Time{},
		removed: map[string]time.Time{}}
	handlers := map[string]func(apiserver.Event, time.Time){"pod": s.handlePod, "endpointslice": s.handleSlice,
		"networkpolicy": s.handleObject, "deployment": s.handleDeployment}
	for _, resource := range []string{"pod", watched[r.Workload.Change]} {
		if resource == "" {
			continue
		}
		w, err := r.Watch(ctx, r.objects(resource), func(e apiserver.Event, at time.Time) {
			s.mu.Lock()
			defer s.mu.Unlock()
			handlers[resource](e, at)
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

// err returns the reasons of watches that ended too early.
func (s *state) err() error {
	var errs []error
	for _, w := range s.watches {
		errs = append(errs, w.Err())
	}
	return errors.Join(errs...)
}

func (s *state) handlePod(e apiserver.Event, at time.Time) {
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
	p.running, p.ready, p.waitReason = status.Started(), status.IsTrue("Ready"), status.WaitReason()
	if p.ip = status.PodIP; p.ip != "" && p.addressed.IsZero() {
		p.addressed = at
	}
	s.pods[name] = p
}

func (s *state) handleSlice(e apiserver.Event, at time.Time) {
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

func (s *state) handleObject(e apiserver.Event, at time.Time) {
	switch e.Type {
	case "ADDED":
		s.added[e.Object.Metadata.Name] = at
	case "DELETED":
		s.removed[e.Object.Metadata.Name] = at
	}
}

func (s *state) handleDeployment(e apiserver.Event, _ time.Time) {
	if e.Type != "DELETED" {
		_ = json.Unmarshal(e.Object.Status, &s.rollout)
	}
}

// pod returns the state of the named pod, zero if there is none.
func (s *state) pod(name string) pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[name]
}

// endpoints returns the addresses to which Services send requests, sorted, and when they last changed.
func (s *state) endpoints() (addresses []string, changed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ready := range s.ready {
		addresses = append(addresses, ready...)
	}
	slices.Sort(addresses)
	return addresses, s.changed
}

// objectTimes returns when an object was created and deleted, zero if it was not.
func (s *state) objectTimes(name string) (added, removed time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added[name], s.removed[name]
}

// rolloutState returns the progress of the Deployment.
func (s *state) rolloutState() rollout {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rollout
}
