// Package webapp sends the HTTP requests that a user describes. The family reads a description on the user's machine;
// the agent turns it into a source of requests for the generator.
package webapp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// ErrDescription is wrapped by every error about a description.
var ErrDescription = errors.New("invalid description of requests")

// A Description describes requests to an application, as users write it in YAML.
type Description struct {
	URL string `json:"url,omitempty"` // such as https://shop.example:8443
	// Service is NAME.NAMESPACE:PORT in the client's cluster, instead of a URL. The scheme is https if there is a CA.
	Service   string   `json:"service,omitempty"`
	Addresses []string `json:"addresses,omitempty"` // host:port of each replica, connected to in turn; empty: the URL's
	HTTP      int      `json:"http,omitempty"`      // 1, the default, or 2
	CA        string   `json:"ca,omitempty"`        // file with the CA certificates of the server
	// Connections is how many connections are opened before the run; an open loop has up to MaxConnections.
	Connections    int       `json:"connections,omitempty"`
	MaxConnections int       `json:"maxConnections,omitempty"`
	Reconnect      bool      `json:"reconnect,omitempty"` // a new connection for every request
	Timeout        string    `json:"timeout,omitempty"`   // of a request; default 10s
	Requests       []Request `json:"requests"`
}

// A Request is one kind of request in the mix. In path, header and body, {{n}} stands for the number of the operation,
// {{random N}} for N random hexadecimal digits, and {{uuid}} for a random UUID.
type Request struct {
	Name     string            `json:"name"`
	Weight   int               `json:"weight,omitempty"` // share of the mix, default 1
	Method   string            `json:"method,omitempty"` // default GET
	Path     string            `json:"path"`             // with the query
	Header   map[string]string `json:"header,omitempty"`
	Secrets  map[string]Secret `json:"secrets,omitempty"` // header fields whose value is not kept in results
	Body     string            `json:"body,omitempty"`
	Status   []int             `json:"status,omitempty"`   // of successful responses; default 200 to 299
	Contains string            `json:"contains,omitempty"` // required in the response's body
}

// A Secret is a value from the environment or a file, with a prefix such as "Bearer ". It is read when a run begins,
// and not kept in results.
type Secret struct {
	Env    string `json:"env,omitempty"`
	File   string `json:"file,omitempty"`
	Prefix string `json:"prefix,omitempty"`
}

// Limits of descriptions.
const (
	maxRequests = 100
	maxWeight   = 1_000_000
	maxTimeout  = 10 * time.Minute
)

// The syntax of fields.
var (
	address   = regexp.MustCompile(`^[^\s/]+:\d{1,5}$`)
	service   = regexp.MustCompile(`^` + label + `\.` + label + `:\d{1,5}$`)
	method    = regexp.MustCompile(`^[A-Z]{1,20}$`)
	fieldName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// label matches a label of a DNS name.
const label = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`

// Validate returns nil, or an error that wraps [ErrDescription] and names the invalid field.
func (d Description) Validate() error {
	if err := d.validateService(); err != nil {
		return err
	}
	u, err := url.Parse(d.url())
	if err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" {
		return fmt.Errorf("%w: url: %q is not http://HOST[:PORT] or https://HOST[:PORT], without path, user or password",
			ErrDescription, d.URL)
	}
	for _, a := range d.Addresses {
		if !address.MatchString(a) {
			return fmt.Errorf("%w: addresses: %q is not HOST:PORT", ErrDescription, a)
		}
	}
	switch {
	case d.HTTP < 0 || d.HTTP > 2:
		return fmt.Errorf("%w: http: %d is neither 1 nor 2", ErrDescription, d.HTTP)
	case d.HTTP == 2 && d.Reconnect:
		return fmt.Errorf("%w: reconnect: HTTP/2 has its requests on one connection", ErrDescription)
	case len(d.Requests) == 0 || len(d.Requests) > maxRequests:
		return fmt.Errorf("%w: requests: there are %d, not 1 to %d", ErrDescription, len(d.Requests), maxRequests)
	case d.Connections < 0 || d.MaxConnections < 0:
		return fmt.Errorf("%w: connections: they are not below 0", ErrDescription)
	}
	if _, err := d.timeout(); err != nil {
		return err
	}
	return d.validateRequests()
}

func (d Description) validateService() error {
	switch {
	case d.Service == "":
		return nil
	case d.URL != "":
		return fmt.Errorf("%w: service: there is a url too, and one of them says where the application is", ErrDescription)
	case !service.MatchString(d.Service):
		return fmt.Errorf("%w: service: %q is not NAME.NAMESPACE:PORT", ErrDescription, d.Service)
	}
	return nil
}

// url returns the application's URL. For a Service it contains the Service's name in the cluster's DNS.
func (d Description) url() string {
	if d.Service == "" {
		return d.URL
	}
	scheme := "http"
	if d.CA != "" {
		scheme = "https"
	}
	name, port, _ := strings.Cut(d.Service, ":")
	return scheme + "://" + name + ".svc:" + port
}

// Destination returns where the requests go.
func (d Description) Destination() host.Destination {
	secret := slices.ContainsFunc(d.Requests, func(r Request) bool { return len(r.Secrets) > 0 })
	return host.Destination{URL: d.url(), Addresses: d.Addresses, Secret: secret}
}

// Files returns the files of this machine that the description names.
func (d Description) Files() []string {
	return d.names(d.CA, func(s Secret) string { return s.File })
}

// Lines returns the method and the path of each request.
func (d Description) Lines() []string {
	var list []string
	for _, r := range d.Requests {
		list = append(list, cmp.Or(r.Method, http.MethodGet)+" "+r.Path)
	}
	return list
}

// Variables returns the environment variables that the description names.
func (d Description) Variables() []string {
	return d.names("", func(s Secret) string { return s.Env })
}

// names returns first, followed by the names that the function of returns for the secrets, without empty ones.
func (d Description) names(first string, of func(Secret) string) []string {
	names := []string{first}
	for _, r := range d.Requests {
		for _, field := range slices.Sorted(maps.Keys(r.Secrets)) {
			names = append(names, of(r.Secrets[field]))
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func (d Description) validateRequests() error {
	names := map[string]bool{}
	for i, r := range d.Requests {
		if names[r.Name] || r.Name == "" {
			return fmt.Errorf("%w: requests[%d]: the name %q is empty or taken", ErrDescription, i, r.Name)
		}
		names[r.Name] = true
		if err := r.validate(); err != nil {
			return fmt.Errorf("%w: requests[%d] (%s): %w", ErrDescription, i, r.Name, err)
		}
	}
	return nil
}

func (d Description) timeout() (time.Duration, error) {
	if d.Timeout == "" {
		return 0, nil
	}
	t, err := time.ParseDuration(d.Timeout)
	if err != nil || t <= 0 || t > maxTimeout {
		return 0, fmt.Errorf("%w: timeout: %q is not a time up to %v, such as 5s", ErrDescription, d.Timeout, maxTimeout)
	}
	return t, nil
}

func (r Request) validate() error {
	if r.Weight < 0 || r.Weight > maxWeight {
		return fmt.Errorf("weight %d is not from 1 to %d", r.Weight, maxWeight)
	}
	if r.Method != "" && !method.MatchString(r.Method) {
		return fmt.Errorf("method %q is not in capital letters", r.Method)
	}
	if !strings.HasPrefix(r.Path, "/") || !printable(r.Path) || strings.Contains(withoutPlaceholders(r.Path), " ") {
		return fmt.Errorf("path %q does not begin with a slash, or has blanks", r.Path)
	}
	for _, text := range []string{r.Path, r.Body} {
		if _, err := compile(text); err != nil {
			return err
		}
	}
	for name, value := range r.Header {
		if _, err := compile(value); err != nil {
			return err
		}
		if err := checkField(name, value); err != nil {
			return err
		}
	}
	return r.validateSecrets()
}

func (r Request) validateSecrets() error {
	for name, s := range r.Secrets {
		if err := checkField(name, s.Prefix); err != nil {
			return err
		}
		if (s.Env == "") == (s.File == "") {
			return fmt.Errorf("secrets: %s is from env or from file", name)
		}
	}
	for _, s := range r.Status {
		if s < 200 || s > 599 {
			return fmt.Errorf("status %d is not from 200 to 599", s)
		}
	}
	return nil
}

// checkField returns an error for a header field that HTTP does not allow, or that the generator sets itself.
func checkField(name, value string) error {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection":
		return fmt.Errorf("the header field %s is the generator's own", name)
	}
	if !fieldName.MatchString(name) || !printable(value) {
		return fmt.Errorf("header field %q: %q can't be sent", name, value)
	}
	return nil
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}
