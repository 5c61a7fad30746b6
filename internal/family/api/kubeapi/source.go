package kubeapi

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// A source is the source of one case's requests.
type source struct {
	apiserver.RunObjects
	call    api.Call
	auth    []httpload.Field
	node    string              // node on which pods start, empty for any
	objects uint64              // objects that exist before the first call
	fixed   []*httpload.Request // requests that do not depend on the operation, used in turn
	updates [][2][]byte         // for each object, the results of updated
	created atomic.Uint64       // objects created so far; a search creates in several rounds
}

func (s *source) Names() []string { return []string{s.call.String()} }

func (s *source) Request(n uint64) *httpload.Request {
	if len(s.fixed) > 0 {
		return s.fixed[n%uint64(len(s.fixed))]
	}
	switch s.call.Verb {
	case "create":
		return s.write("POST", s.All(), "application/json", s.Object(s.created.Add(1)-1, s.body()), 201)
	case "watch":
		return s.write("POST", s.All(), "application/json", s.Object(n, s.body()), 201)
	case "update":
		u := s.updates[n%s.objects]
		body := strconv.AppendUint(append([]byte{}, u[0]...), n, 10)
		return s.write("PUT", s.Path(n%s.objects), "application/json", append(body, u[1]...), 200)
	case "patch":
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, counter, n)
		return s.write("PATCH", s.Path(n%s.objects), "application/merge-patch+json", body, 200)
	case "scale":
		// The number changes in every round, so that each call has an effect: from 0 to 1 and back, or from N to N-1 and
		// back.
		replicas := 1 - n/s.objects%2
		if s.call.Replicas > 0 {
			replicas = uint64(s.call.Replicas) - 1 + n/s.objects%2
		}
		body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		return s.write("PATCH", s.Path(n%s.objects)+"/scale", "application/merge-patch+json", body, 200)
	}
	// The verb is delete. Status 202 accepts the deletion of a namespace, which goes on after the response.
	return &httpload.Request{Method: "DELETE", Path: s.Path(n), Header: s.auth, Statuses: []int{200, 202}}
}

func (s *source) body() map[string]any { return body(s.RunObjects, s.call, s.node) }

func (s *source) write(method, path, contentType string, body []byte, status int) *httpload.Request {
	header := append(s.auth[:len(s.auth):len(s.auth)], httpload.Field{Name: "Content-Type", Value: contentType})
	return &httpload.Request{Method: method, Path: path, Header: header, Body: body, Statuses: []int{status}}
}

// prepareFixed prepares the requests that do not depend on the operation.
func (s *source) prepareFixed() {
	read := func(path string) {
		s.fixed = append(s.fixed, &httpload.Request{Method: "GET", Path: path, Header: s.auth, Statuses: []int{200}})
	}
	switch s.call.Verb {
	case "floor":
		read(s.Prefix + "/version")
	case "list":
		path := s.All() + "?" + s.Selector()
		if !s.call.Consistent {
			path += "&resourceVersion=0"
		}
		read(path)
	case "get":
		for n := range s.objects {
			read(s.Path(n))
		}
	}
}
