package webapp

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// A mix is a source of requests in random order with weights. The order depends only on the seed and the number of the
// operation, so that every target gets the same requests.
type mix struct {
	seed  uint64
	names []string
	sums  []int // sums[i] is the sum of the weights of kinds 0 to i
	kinds []compiled
}

// A compiled request is a [Request] with parsed templates.
type compiled struct {
	method     string
	path, body template
	header     []compiledField
	statuses   []int
	contains   []byte
	fixed      *httpload.Request // the request if it is the same in every operation, else nil
}

type compiledField struct {
	name  string
	value template
}

// Source returns the source of a valid description's requests. secrets holds the values of secret header fields, by the
// names of the request and the field.
func (d Description) Source(seed uint64, secrets map[string]map[string]string) (httpload.Source, error) {
	m := &mix{seed: seed}
	total := 0
	for i, r := range d.Requests {
		c, err := r.compile(secrets[r.Name])
		if err != nil {
			return nil, err
		}
		if c.static() {
			c.fixed = c.request(i, 0, nil)
		}
		total += max(r.Weight, 1)
		m.names, m.kinds, m.sums = append(m.names, r.Name), append(m.kinds, c), append(m.sums, total)
	}
	return m, nil
}

func (r Request) compile(secrets map[string]string) (c compiled, err error) {
	c.method, c.statuses = r.Method, r.Status
	if c.method == "" {
		c.method = "GET"
	}
	if r.Contains != "" {
		c.contains = []byte(r.Contains)
	}
	if c.path, err = compile(r.Path); err != nil {
		return c, err
	}
	if c.body, err = compile(r.Body); err != nil {
		return c, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value, err := compile(r.Header[name])
		if err != nil {
			return c, err
		}
		c.header = append(c.header, compiledField{name, value})
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		c.header = append(c.header, compiledField{name, template{parts: []part{{text: secrets[name]}}, static: true}})
	}
	return c, nil
}

func (c compiled) static() bool {
	differs := slices.ContainsFunc(c.header, func(f compiledField) bool { return !f.value.static })
	return c.path.static && c.body.static && !differs
}

func (c compiled) request(kind int, n uint64, random *rand.Rand) *httpload.Request {
	r := &httpload.Request{Kind: kind, Method: c.method, Path: string(c.path.render(n, random)),
		Body: c.body.render(n, random), Statuses: c.statuses, Contains: c.contains}
	for _, f := range c.header {
		r.Header = append(r.Header, httpload.Field{Name: f.name, Value: string(f.value.render(n, random))})
	}
	return r
}

// Names returns the names of the requests.
func (m *mix) Names() []string { return m.names }

// Request returns the request of operation n.
func (m *mix) Request(n uint64) *httpload.Request {
	kind := 0
	var random *rand.Rand
	if len(m.kinds) > 1 || m.kinds[0].fixed == nil {
		random = rand.New(rand.NewPCG(m.seed, n))
		kind = sort.SearchInts(m.sums, 1+random.IntN(m.sums[len(m.sums)-1]))
	}
	if fixed := m.kinds[kind].fixed; fixed != nil {
		return fixed
	}
	return m.kinds[kind].request(kind, n, random)
}
