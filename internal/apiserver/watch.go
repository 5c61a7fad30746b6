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

// An Event holds the fields of a watch event that are needed here.
type Event struct {
	Type   string `json:"type"` // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	Object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status    json.RawMessage `json:"status"`
		Endpoints []SliceEndpoint `json:"endpoints"` // EndpointSlices only
		Message   string          `json:"message"`   // ERROR only
	} `json:"object"`
}

// A SliceEndpoint is one endpoint of an EndpointSlice.
type SliceEndpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready *bool `json:"ready"` // nil means ready
	} `json:"conditions"`
}

// PodStatus holds the fields of a pod's status that tell its progress.
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

// IsTrue reports whether a condition of the pod, such as Ready, is true.
func (p PodStatus) IsTrue(condition string) bool {
	for _, c := range p.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// Started reports whether all containers run.
func (p PodStatus) Started() bool {
	for _, c := range p.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return len(p.ContainerStatuses) > 0
}

// WaitReason returns why a pod does not start: the reason of its first waiting container, "no node", or "unknown".
func (p PodStatus) WaitReason() string {
	for _, c := range p.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return w.Reason + ": " + w.Message
		}
	}
	if !p.IsTrue("PodScheduled") {
		return "no node"
	}
	return "unknown"
}

// A Watch passes on the events of a run's objects.
type Watch struct {
	body  io.ReadCloser
	ended chan struct{}
	err   error // valid once ended is closed
}

// Watch starts to watch the objects of the run from now on. One goroutine calls seen for each event, with the time at
// which the event's last byte was read.
func (c *Client) Watch(ctx context.Context, o RunObjects, seen func(Event, time.Time)) (*Watch, error) {
	l, err := c.list(ctx, o)
	if err != nil {
		return nil, err
	}
	path := o.All() + "?watch=1&" + o.Selector() + "&resourceVersion=" + l.Metadata.ResourceVersion
	answer, err := c.Ask(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, &Refusal{Status: answer.StatusCode, Message: fmt.Sprintf("a watch of %s is answered with status %d",
			o.Plural, answer.StatusCode)}
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

// Close ends the watch. After it has returned, seen is not called any more.
func (w *Watch) Close() {
	_ = w.body.Close()
	<-w.ended
}

// Err returns the reason why the watch has ended, nil while it lasts.
func (w *Watch) Err() error {
	select {
	case <-w.ended:
		return w.err
	default:
		return nil
	}
}

// Number returns the number n in a name as ObjectName writes it, and false for other names.
func (o RunObjects) Number(name string) (uint64, bool) {
	text, ok := strings.CutPrefix(name, "knotmeter-"+o.Run+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}
