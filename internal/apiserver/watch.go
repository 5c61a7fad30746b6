package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An Event is as much of one as matters here.
type Event struct {
	Type   string `json:"type"` // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	Object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status    json.RawMessage `json:"status"`
		Endpoints []SliceEndpoint `json:"endpoints"` // of an EndpointSlice
		Message   string          `json:"message"`   // of an error
	} `json:"object"`
}

// A SliceEndpoint is one of an EndpointSlice.
type SliceEndpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready *bool `json:"ready"` // nil: it is
	} `json:"conditions"`
}

// PodStatus is of a pod's status what says how far it is.
type PodStatus struct {
	PodIP      string `json:"podIP"`
	Conditions []struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	} `json:"conditions"`
	ContainerStatuses []struct {
		State struct {
			Running *struct{} `json:"running"`
			Waiting *struct {
				Reason  string `json:"reason"`
				Message string `json:"message"`
			} `json:"waiting"`
		} `json:"state"`
	} `json:"containerStatuses"`
}

// Is says whether a condition is true.
func (p PodStatus) Is(condition string) bool {
	for _, c := range p.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// Started says whether all containers run.
func (p PodStatus) Started() bool {
	for _, c := range p.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return len(p.ContainerStatuses) > 0
}

// Waits says what a pod that does not start waits for: a container, or "no node".
func (p PodStatus) Waits() string {
	for _, c := range p.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return w.Reason + ": " + w.Message
		}
	}
	if !p.Is("PodScheduled") {
		return "no node"
	}
	return "unknown"
}

// A Watch tells of the objects of a run as the server does.
type Watch struct {
	body  io.ReadCloser
	ended chan struct{}
	err   error // once ended
}

// Watch begins to watch the objects of the run from now on. seen gets each event with the time at which its
// last byte was read, from one goroutine.
func (c *Client) Watch(ctx context.Context, i Inventory, seen func(Event, time.Time)) (*Watch, error) {
	l, err := c.list(ctx, i)
	if err != nil {
		return nil, err
	}
	path := i.All() + "?watch=1&" + i.Selector() + "&resourceVersion=" + l.Metadata.ResourceVersion
	answer, err := c.Ask(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, &Refusal{Status: answer.StatusCode, Message: fmt.Sprintf("a watch of %s is answered with status %d",
			i.Plural, answer.StatusCode)}
	}
	w := &Watch{body: answer.Body, ended: make(chan struct{})}
	go w.read(seen)
	return w, nil
}

func (w *Watch) read(seen func(Event, time.Time)) {
	defer close(w.ended)
	in := json.NewDecoder(w.body)
	for {
		var e Event
		if err := in.Decode(&e); err != nil {
			w.err = fmt.Errorf("the watch ended: %w", err)
			return
		}
		if e.Type == "ERROR" {
			w.err = fmt.Errorf("the watch ended: %s", e.Object.Message)
			return
		}
		seen(e, time.Now())
	}
}

// Close ends it.
func (w *Watch) Close() {
	_ = w.body.Close()
	<-w.ended
}

// Failed is why the watch ended before it was closed.
func (w *Watch) Failed() error {
	select {
	case <-w.ended:
		return w.err
	default:
		return nil
	}
}

// Number is the operation that an object was made by.
func (i Inventory) Number(name string) (uint64, bool) {
	text, ok := strings.CutPrefix(name, "knotmeter-"+i.Run+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}
