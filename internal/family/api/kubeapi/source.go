package kubeapi

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// A source is the calls of one case.
type source struct {
	apiserver.Inventory
	call    api.Call
	auth    []httpload.Field
	node    string     // that pods start on
	have    uint64     // objects that there are
	fixed   []*request // one for each object, where the call does not differ otherwise
	updates [][2][]byte
	created atomic.Uint64 // objects so far; a search creates in several rounds
}

type request = httpload.Request

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
		u := s.updates[n%s.have]
		body := strconv.AppendUint(append([]byte{}, u[0]...), n, 10)
		return s.write("PUT", s.Path(n%s.have), "application/json", append(body, u[1]...), 200)
	case "patch":
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, counter, n)
		return s.write("PATCH", s.Path(n%s.have), "application/merge-patch+json", body, 200)
	case "scale":
		// Another number in every round, so that each call changes something: of none one up first, else one down.
		replicas := 1 - n/s.have%2
		if s.call.Replicas > 0 {
			replicas = uint64(s.call.Replicas) - 1 + n/s.have%2
		}
		body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		return s.write("PATCH", s.Path(n%s.have)+"/scale", "application/merge-patch+json", body, 200)
	}
	// delete; a namespace is accepted for deletion, which goes on behind the answer.
	return &httpload.Request{Method: "DELETE", Path: s.Path(n), Header: s.auth, Statuses: []int{200, 202}}
}

func (s *source) body() map[string]any { return body(s.Inventory, s.call, s.node) }

func (s *source) write(method, path, contentType string, body []byte, status int) *httpload.Request {
	header := append(s.auth[:len(s.auth):len(s.auth)], httpload.Field{Name: "Content-Type", Value: contentType})
	return &httpload.Request{Method: method, Path: path, Header: header, Body: body, Statuses: []int{status}}
}

// prepareFixed makes the calls that are the same each time.
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
		for n := range s.have {
			read(s.Path(n))
		}
	}
}
