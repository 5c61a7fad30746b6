package vault

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

const rootToken = "hvs.secret"

// A cluster is a model of a Vault with several replicas, whose state and faults a test sets.
type cluster struct {
	t        *testing.T
	mu       sync.Mutex
	servers  []*httptest.Server
	leads    int // index of the leader
	since    int // start of its leadership
	sealed   bool
	mounts   map[string]string         // their descriptions, by name
	asked    map[string]int            // requests, by operation
	last     map[string]map[string]any // body of the last request, by operation
	byServer []int
	redirect bool
	forbid   bool
	apart    bool // standbys do not hear from the leader
	joined   []bool
	unsealed []bool
	fresh    bool // not initialized
	busy     bool // operations are refused
}

// gone is an address where nothing listens. The port of a closed server could have been given to another test.
const gone = "127.0.0.1:1"

func newCluster(t *testing.T, n int) *cluster {
	c := &cluster{t: t, mounts: map[string]string{"secret/": "of somebody else"}, asked: map[string]int{},
		last:     map[string]map[string]any{},
		byServer: make([]int, n), joined: make([]bool, n), unsealed: make([]bool, n)}
	for i := range n {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(i, w, r) }))
		t.Cleanup(s.Close)
		c.servers = append(c.servers, s)
	}
	return c
}

func (c *cluster) endpoint() host.Endpoint {
	e := host.Endpoint{URL: c.servers[0].URL, Secret: host.Secret{Token: rootToken}}
	for _, s := range c.servers {
		e.Addresses = append(e.Addresses, s.Listener.Addr().String())
	}
	return e
}

func (c *cluster) serve(i int, w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	say := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch {
	case path == "sys/health":
		health := map[string]any{"initialized": !c.fresh, "sealed": c.sealed || c.fresh ||
			c.unsealed[0] && !c.unsealed[i], "standby": i != c.leads, "version": "1.21.0"}
		if i != c.leads {
			health["ha_connection_healthy"] = !c.apart
		}
		if c.apart && i != c.leads && r.URL.Query().Get("haunhealthycode") != "200" {
			w.WriteHeader(474)
		}
		say(health)
		return
	case path == "sys/leader":
		l := map[string]any{"ha_enabled": len(c.servers) > 1, "is_self": i == c.leads &&
			len(c.servers) > 1, "leader_address": c.servers[c.leads].URL}
		if i == c.leads {
			l["active_time"] = fmt.Sprint(c.since)
		}
		say(l)
		return
	case path == "sys/init":
		c.fresh, c.unsealed[0] = false, false
		say(map[string]any{"keys_base64": []string{"key"}, "root_token": rootToken})
		return
	case path == "sys/storage/raft/join":
		c.joined[i] = body["leader_api_addr"] == c.servers[0].URL
		say(map[string]any{"joined": c.joined[i]})
		return
	case path == "sys/unseal":
		c.unsealed[i] = body["key"] == "key" && (i == 0 || c.joined[i])
		say(map[string]any{})
		return
	case r.Header.Get("X-Vault-Token") != rootToken || c.forbid:
		w.WriteHeader(http.StatusForbidden)
		say(map[string]any{"errors": []string{"permission denied"}})
		return
	case i != c.leads && c.redirect:
		w.Header().Set("Location", c.servers[c.leads].URL+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	c.secrets(i, path, r.Method, body, w)
}

func (c *cluster) secrets(i int, path, method string, body map[string]any, w http.ResponseWriter) {
	say := func(v any) { _ = json.NewEncoder(w).Encode(map[string]any{"data": v}) }
	if name, is := strings.CutPrefix(path, "sys/mounts/"); is {
		if method == "DELETE" {
			delete(c.mounts, name+"/")
		} else {
			c.mounts[name+"/"], _ = body["description"].(string)
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if path == "sys/mounts" {
		all := map[string]any{}
		for name, about := range c.mounts {
			all[name] = map[string]any{"type": "transit", "description": about}
		}
		say(all)
		return
	}
	parts := strings.Split(path, "/")
	if _, is := c.mounts[parts[0]+"/"]; !is || len(parts) != 3 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if c.busy {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.asked[parts[1]]++
	c.last[parts[1]] = body
	c.byServer[i]++
	switch parts[1] {
	case "encrypt":
		say(map[string]any{"ciphertext": "vault:v1:" + body["plaintext"].(string)})
	case "decrypt":
		say(map[string]any{"plaintext": strings.TrimPrefix(body["ciphertext"].(string), "vault:v1:")})
	case "sign":
		say(map[string]any{"signature": fmt.Sprint("vault:v1:", body["signature_algorithm"], body["input"])})
	case "verify":
		valid := body["signature"] == fmt.Sprint("vault:v1:", body["signature_algorithm"], body["input"])
		say(map[string]any{"valid": valid})
	}
}

// config returns a run of the operation ask.
func config(e host.Endpoint, ask string, l httpload.Load) Config {
	l.Warmup, l.Window = 50*time.Millisecond, time.Second
	return Config{Endpoint: e, Ask: ask, Load: l, Limit: time.Minute}
}

// TestRun checks that every replica answers every operation, and that no mount is left.
func TestRun(t *testing.T) {
	for _, name := range []string{"encrypt", "decrypt", "sign", "verify", "mix"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3)
			r, err := Run(t.Context(), config(c.endpoint(), name, httpload.Load{Rate: 200}))
			if err != nil || r.Total.OK != 200 || r.Total.Failed() > 0 || len(r.Invalid) > 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			kinds := 1
			if name == "mix" {
				kinds = 4
			}
			if len(r.Kinds) != kinds || kinds == 1 && r.Kinds[0].Name != name {
				t.Errorf("%+v", r.Kinds)
			}
			for _, k := range r.Kinds {
				if want := uint64(200 / kinds); k.OK < want*6/10 || k.OK > want*14/10 {
					t.Errorf("%s was asked %d times, wanted about %d", k.Name, k.OK, want)
				}
			}
			if slices.Min(c.byServer) < 40 {
				t.Errorf("the replicas answered %v", c.byServer)
			}
			if len(c.mounts) != 1 {
				t.Errorf("left: %v", c.mounts)
			}
			if r.Facts["vault.version"] != "1.21.0" || !strings.Contains(r.Facts["vault.forwarding"], "2 of 3") ||
				strings.Contains(fmt.Sprint(r), rootToken) {
				t.Errorf("%v", r.Facts)
			}
		})
	}
}

// TestPublished checks that published measurements count from the first request on: a warm-up would leave out the time
// in which all clients start at the same time.
func TestPublished(t *testing.T) {
	c := newCluster(t, 1)
	w := config(c.endpoint(), "published", httpload.Load{Clients: 20})
	w.Load.Warmup = time.Hour
	r, err := Run(t.Context(), w)
	if err != nil || r.Total.OK < 20 || r.Total.Failed() > 0 || len(r.Kinds) != 4 ||
		r.Window != 1 || r.AtOnce != 20 || r.Facts["vault.published"] == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	// Verify and decrypt are as published; sign and encrypt are those of the mix.
	decrypted := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 64)))
	if c.last["verify"]["signature_algorithm"] != "pkcs1v15" || c.last["sign"]["signature_algorithm"] != nil ||
		len(c.last["decrypt"]["ciphertext"].(string)) != len("vault:v1:"+decrypted) ||
		r.Facts["vault.verified"] != "pkcs1v15" || r.Facts["vault.text"] != "128 B, 64 B to decrypt" {
		t.Errorf("%v, %v", c.last, r.Facts)
	}
	sum := 0
	for _, n := range c.asked {
		sum += n
	}
	// The other four: creating the key, trying the replica, and creating the ciphertext and the signature.
	if uint64(sum) != r.Total.OK+4 {
		t.Errorf("%d requests were answered, %d counted", sum, r.Total.OK)
	}
	if l := w.loadConfig(httpload.Server{}, nil); l.Timeout != time.Minute || l.Clients != 20 {
		t.Errorf("%+v", l)
	}
	l := config(host.Endpoint{}, "mix", httpload.Load{Clients: 20}).loadConfig(httpload.Server{}, nil)
	if l.Timeout != 0 ||
		l.Warmup == 0 {
		t.Errorf("%+v", l)
	}
}

func TestPinned(t *testing.T) {
	c := newCluster(t, 3)
	c.leads, c.redirect = 2, true
	e := c.endpoint()
	if _, err := Run(t.Context(), config(e, "mix", httpload.Load{Rate: 100})); err == nil ||
		!strings.Contains(err.Error(), "redirects clients to the leader") {
		t.Errorf("all, where standbys redirect: %v", err)
	}
	e.Leader = true
	r, err := Run(t.Context(), config(e, "mix", httpload.Load{Rate: 100}))
	if err != nil || r.Facts["vault.asked"] != "the leader alone" || c.byServer[0]+c.byServer[1] > 0 {
		t.Errorf("%v, %v, %v", r.Facts, c.byServer, err)
	}
	e.Addresses = e.Addresses[:2]
	if _, err := Run(t.Context(), config(e, "mix", httpload.Load{Rate: 100})); err == nil ||
		!strings.Contains(err.Error(), "none of the addresses") {
		t.Errorf("without the leader's address: %v", err)
	}
}

// TestChanges checks that changes of Vault during a run make it invalid.
func TestChanges(t *testing.T) {
	for want, happens := range map[string]func(c *cluster){
		"was sealed during the run": func(c *cluster) { c.sealed = true },
		"has another leader":        func(c *cluster) { c.leads = 1 },
		"was elected again":         func(c *cluster) { c.since++ },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3)
			time.AfterFunc(600*time.Millisecond, func() { c.mu.Lock(); defer c.mu.Unlock(); happens(c) })
			r, err := Run(t.Context(), config(c.endpoint(), "mix", httpload.Load{Rate: 100}))
			if err != nil || !strings.Contains(strings.Join(result.Texts(r.Invalid), "; "), want) {
				t.Errorf("%v, %v", r.Invalid, err)
			}
		})
	}
	// A standby that does not hear from a leader that still leads is a warning, not a change.
	c := newCluster(t, 3)
	time.AfterFunc(600*time.Millisecond, func() { c.mu.Lock(); defer c.mu.Unlock(); c.apart = true })
	long := config(c.endpoint(), "mix", httpload.Load{Rate: 100})
	long.Load.Window *= 2 // for at least one check after that
	r, err := Run(t.Context(), long)
	if err != nil || len(r.Invalid) > 0 || !strings.Contains(strings.Join(result.Texts(r.Warnings), "; "),
		"had not heard of its leader lately") {
		t.Errorf("%v, %v, %v", r.Invalid, r.Warnings, err)
	}
	c = newCluster(t, 1)
	for want, s := range map[string]state{"is not initialised": {}, "is sealed": {Initialized: true, Sealed: true},
		"knows of no leader": {Initialized: true, leader: leader{HA: true}}} {
		if err := s.checkReady("a"); !errors.Is(err, ErrVault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	c.forbid = true
	if _, err := Run(t.Context(), config(c.endpoint(), "mix", httpload.Load{Rate: 20})); err == nil ||
		!strings.Contains(err.Error(), "capabilities") || strings.Contains(err.Error(), rootToken) {
		t.Errorf("without rights: %v", err)
	}
}

// TestDistress checks that the run stops early when Vault begins to refuse requests, and reports that.
func TestDistress(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	time.AfterFunc(500*time.Millisecond, func() { c.mu.Lock(); defer c.mu.Unlock(); c.busy = true })
	w := config(c.endpoint(), "encrypt", httpload.Load{Rate: 200})
	w.Load.Window = 10 * time.Minute
	r, err := Run(t.Context(), w)
	if err != nil || !strings.Contains(r.Stopped, "in distress") || len(c.mounts) != 1 {
		t.Errorf("stopped %q, %v, %v", r.Stopped, c.mounts, err)
	}
}

func TestCancelledLeavesNothing(t *testing.T) {
	c := newCluster(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	w := config(c.endpoint(), "mix", httpload.Load{Rate: 20})
	w.Load.Window = time.Minute
	if _, err := Run(ctx, w); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if len(c.mounts) != 1 {
		t.Errorf("left: %v", c.mounts)
	}
}

// over describes a mount whose run is over.
const over = mountDescription + mountUntil + "2020-01-01T00:00:00Z"

// removeLeftovers returns the options that remove what is left, and report nothing.
func removeLeftovers() targets.Cleaning { return targets.Cleaning{Found: func(targets.Leftover) {}} }

// TestClean checks that mounts that a run may still use stay, also those without a known end, that All removes them,
// and that foreign mounts always stay.
func TestClean(t *testing.T) {
	for name, test := range map[string]struct {
		how  targets.Cleaning
		left []string
	}{
		"over": {targets.Cleaning{}, []string{"knotmeter-mine/", "knotmeter-now/", "knotmeter-silent/", "secret/"}},
		"dry run": {targets.Cleaning{DryRun: true, All: true},
			[]string{"knotmeter-mine/", "knotmeter-now/", "knotmeter-old/", "knotmeter-silent/", "secret/"}},
		"all": {targets.Cleaning{All: true}, []string{"knotmeter-mine/", "secret/"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			c.mounts["knotmeter-old/"], c.mounts["knotmeter-silent/"] = over, mountDescription
			c.mounts["knotmeter-now/"] = mountDescription + mountUntil + time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
			c.mounts["knotmeter-mine/"] = "of somebody else, with such a name"
			found := map[string]bool{} // whether it is removed
			test.how.Found = func(l targets.Leftover) { found[strings.Fields(l.Name)[1]] = l.Removable }
			removed, err := Clean(t.Context(), c.endpoint(), test.how)
			if left := slices.Sorted(maps.Keys(c.mounts)); err != nil ||
				!slices.Equal(left, test.left) || len(removed) != 5-len(left) {
				t.Errorf("removed %v, %v, left %v", removed, err, left)
			}
			want := map[string]bool{"knotmeter-now": test.how.All, "knotmeter-old": true, "knotmeter-silent": test.how.All}
			if !maps.Equal(found, want) {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestMountOfRun checks that the mount of a killed run counts as in use for as long as the run could last, and no
// longer.
func TestMountOfRun(t *testing.T) {
	c := newCluster(t, 1)
	all, err := replicas(c.endpoint())
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	if _, err := newMount(t.Context(), all[0], until); err != nil {
		t.Fatal(err)
	}
	left, err := all[0].leftMounts(t.Context())
	if err != nil || len(left) != 1 || !left[0].until.Equal(until) {
		t.Fatalf("%+v, %v", left, err)
	}
	if left[0].inUse(until.Add(-time.Second)) == "" || left[0].inUse(until) != "" {
		t.Errorf("%q, %q", left[0].inUse(until.Add(-time.Second)), left[0].inUse(until))
	}
}

// TestMountOfSearch checks that the mount of a search, which has many windows, counts as in use until they are over.
func TestMountOfSearch(t *testing.T) {
	c := newCluster(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	serve := c.servers[0].Config.Handler
	var until time.Time
	c.servers[0].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve.ServeHTTP(w, r)
		if until.IsZero() && r.Method == "POST" && strings.HasPrefix(r.URL.Path, "/v1/sys/mounts/") {
			all, err := replicas(c.endpoint())
			if err != nil {
				t.Error(err)
				return
			}
			left, err := all[0].leftMounts(ctx)
			if err != nil || len(left) != 1 {
				t.Errorf("%v, %v", left, err)
				return
			}
			until = left[0].until
			cancel()
		}
	})
	const limit = 3 * time.Hour
	search := Config{Endpoint: c.endpoint(), Ask: Mix, Limit: limit,
		Load: httpload.Load{Knee: 50 * time.Millisecond, Warmup: time.Minute, Window: 9 * time.Minute}}
	began := time.Now()
	if _, err := Run(ctx, search); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if kept := until.Sub(began); kept < limit {
		t.Errorf("a run of up to %v, and the mount is kept for %v", limit, kept)
	}
}

// TestCleanInstance checks that Clean uses the Vault that a run would have used, from the option or the environment,
// and any replica that answers.
func TestCleanInstance(t *testing.T) {
	for name, test := range map[string]struct {
		instance  Instance
		env       map[string]string
		left      int
		complains bool
	}{
		"option":      {Instance{URL: "here"}, map[string]string{"VAULT_TOKEN": rootToken}, 0, false},
		"environment": {Instance{}, map[string]string{"VAULT_ADDR": "here", "VAULT_TOKEN": rootToken}, 0, false},
		"option before it": {Instance{URL: "here"},
			map[string]string{"VAULT_ADDR": "http://" + gone, "VAULT_TOKEN": rootToken}, 0, false},
		"a replica is away": {Instance{URL: "here", Addresses: []string{gone, "here"}},
			map[string]string{"VAULT_TOKEN": rootToken}, 0, false},
		"deployed": {Instance{Deploy: true},
			map[string]string{"VAULT_ADDR": "here", "VAULT_TOKEN": rootToken}, 1, false},
		"nothing":               {Instance{}, nil, 1, false},
		"environment, no token": {Instance{}, map[string]string{"VAULT_ADDR": "here"}, 1, false},
		"option, no token":      {Instance{URL: "here"}, nil, 1, true},
		"environment, nobody": {Instance{}, map[string]string{"VAULT_ADDR": "http://" + gone, "VAULT_TOKEN": rootToken},
			1, true},
		"environment, wrong token": {Instance{}, map[string]string{"VAULT_ADDR": "here", "VAULT_TOKEN": "wrong"}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			c.mounts = map[string]string{"knotmeter-old/": over}
			m := Machine{Home: func() (string, error) { return "/home/x", nil },
				ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
			m.Getenv = func(name string) string { return strings.Replace(test.env[name], "here", c.servers[0].URL, 1) }
			test.instance.URL = strings.Replace(test.instance.URL, "here", c.servers[0].URL, 1)
			for i, a := range test.instance.Addresses {
				test.instance.Addresses[i] = strings.Replace(a, "here", c.servers[0].Listener.Addr().String(), 1)
			}
			removed, err := test.instance.Clean(t.Context(), m, removeLeftovers(), nil)
			if len(c.mounts) != test.left || len(removed) != 1-test.left || (err != nil) != test.complains {
				t.Errorf("left %v, removed %v, %v", c.mounts, removed, err)
			}
		})
	}
}

// TestCleanElsewhere checks that elsewhere is called if no Vault answers here, and not if Vault refuses.
func TestCleanElsewhere(t *testing.T) {
	here := newCluster(t, 1)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for name, test := range map[string]struct {
		url, token string
		elsewhere  error
		asked      bool
		says       []string
	}{
		"nobody answers":        {"http://" + gone, rootToken, nil, true, nil},
		"somebody else answers": {other.URL, rootToken, nil, true, nil},
		"nor there": {"http://" + gone, rootToken, errors.New("nor there"),
			true, []string{"http://" + gone, "refused", "nor there"}},
		"somebody answers": {here.servers[0].URL, rootToken, nil, false, nil},
		"somebody refuses": {here.servers[0].URL, "wrong", nil, false, []string{"status 403"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Machine{Getenv: func(name string) string { return map[string]string{"VAULT_TOKEN": test.token}[name] }}
			asked := false
			removed, err := Instance{URL: test.url}.Clean(t.Context(), m,
				removeLeftovers(), func(_ context.Context, e host.Endpoint) ([]string, error) {
					asked = true
					return []string{"a mount at " + e.URL}, test.elsewhere
				})
			if asked != test.asked || (len(removed) == 1) != test.asked || (err != nil) != (test.says != nil) {
				t.Errorf("asked %v, removed %v, %v", asked, removed, err)
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	}
}

// TestTask checks that the outcome holds the result of a task, and that an invalid task is an error.
func TestTask(t *testing.T) {
	c := newCluster(t, 1)
	run := func(e Task) Outcome {
		t.Helper()
		said, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	c.mounts["knotmeter-old/"] = over
	if said := run(Task{Endpoint: c.endpoint(), Clean: true, Timeout: time.Minute}); said.Error != "" ||
		len(said.Removed) != 1 || len(said.Found) != 1 || len(c.mounts) != 1 {
		t.Errorf("%+v, left %v", said, c.mounts)
	}
	c.fresh = true
	if said := run(Task{Endpoint: c.endpoint(), Timeout: time.Minute}); said.Error != "" || said.Token != rootToken {
		t.Errorf("%+v", said)
	}
	unreachable := host.Endpoint{URL: "http://" + gone, Addresses: []string{gone}, Secret: host.Secret{Token: rootToken}}
	for _, clean := range []bool{true, false} {
		if said := run(Task{Endpoint: unreachable, Clean: clean,
			Timeout: 300 * time.Millisecond}); !strings.Contains(said.Error, "refused") || said.Token != "" {
			t.Errorf("clean %v: %+v", clean, said)
		}
	}
	for _, e := range []Task{{}, {Timeout: 1}, {Clean: true}} {
		if said, err := e.Run(t.Context()); !errors.Is(err, ErrVault) || said.Error != "" {
			t.Errorf("%+v: %v, %+v", e, err, said)
		}
	}
}

func TestInitialize(t *testing.T) {
	c := newCluster(t, 3)
	c.fresh = true
	e := c.endpoint()
	e.Secret.Token = ""
	token, err := Initialize(t.Context(), e)
	if err != nil || token != rootToken || !slices.Equal(c.unsealed, []bool{true, true, true}) ||
		!slices.Equal(c.joined, []bool{false, true, true}) {
		t.Errorf("%v; joined %v, unsealed %v", err, c.joined, c.unsealed)
	}
	c.fresh = true
	e.Addresses[1] = gone
	short, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	if _, err := Initialize(short, e); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrVault) {
		t.Errorf("with a replica that does not come: %v", err)
	}
}

// TestEndpoint checks that a Vault is found as its own command line would find it.
func TestEndpoint(t *testing.T) {
	m := func(env, files map[string]string) Machine {
		return Machine{
			Getenv: func(name string) string { return env[name] },
			ReadFile: func(name string) ([]byte, error) {
				if text, is := files[name]; is {
					return []byte(text), nil
				}
				return nil, fs.ErrNotExist
			},
			Home: func() (string, error) { return "/home/x", nil },
		}
	}
	e, err := Instance{}.Endpoint(m(map[string]string{
		"VAULT_ADDR": "https://10.0.0.1:8200", "VAULT_TOKEN": "t", "VAULT_NAMESPACE": "n", "VAULT_CACERT": "ca",
		"VAULT_TLS_SERVER_NAME": "vault.example",
	}, map[string]string{"ca": "PEM"}))
	if err != nil || e.URL != "https://vault.example:8200" || !slices.Equal(e.Addresses, []string{"10.0.0.1:8200"}) ||
		e.Secret.Token != "t" || e.Namespace != "n" || string(e.CA) != "PEM" {
		t.Errorf("%+v, %v", e, err)
	}
	e, err = Instance{URL: "http://v:1", TokenFile: "f"}.Endpoint(m(map[string]string{"VAULT_TOKEN": "other"},
		map[string]string{"f": " own\n"}))
	if err != nil || e.Secret.Token != "own" || e.URL != "http://v:1" {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := (Instance{URL: "http://v:1"}).Endpoint(m(nil,
		map[string]string{"/home/x/.vault-token": "kept"})); err != nil || e.Secret.Token != "kept" {
		t.Errorf("%v, %v", e, err)
	}
	for want, env := range map[string]map[string]string{
		"no Vault is given":        nil,
		"VAULT_SKIP_VERIFY is set": {"VAULT_ADDR": "https://v", "VAULT_SKIP_VERIFY": "true"},
		"no token":                 {"VAULT_ADDR": "https://v"},
		"holds is no token":        {"VAULT_ADDR": "https://v", "VAULT_TOKEN": "a b"},
		"VAULT_ADDR=":              {"VAULT_ADDR": "unix:///x"},
		"file does not exist":      {"VAULT_ADDR": "https://v", "VAULT_CACERT": "nowhere"},
	} {
		_, err := Instance{}.Endpoint(m(env, nil))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "a b") {
			t.Errorf("%v: %v", env, err)
		}
		if want == "no Vault is given" && !errors.Is(err, result.ErrNotSupported) {
			t.Error(err)
		}
	}
}

func TestOptions(t *testing.T) {
	good := map[string]string{
		"vault": "https://v:8200", "vault-addresses": "a:1,b:2", "vault-ask": "leader", "vault-ca": "f",
		"vault-token-file": "f",
		"vault-namespace":  "n", "vault-replicas": "2", "vault-image": "x/y:1", "vault-cpu": "1500m", "vault-memory": "8Gi",
		"vault-storage-class": "fast.example",
	}
	bad := map[string]string{"vault": "v:8200", "vault-addresses": "a",
		"vault-ask": "none", "vault-replicas": "4", "vault-image": "a b",
		"vault-cpu": "99m", "vault-memory": "1e9", "vault-storage-class": "A_b"}
	for _, s := range DeploySettings() {
		if err := s.Set(&Instance{}, good[s.Name]); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if text, is := bad[s.Name]; is && s.Set(&Instance{}, text) == nil {
			t.Errorf("%s=%s is taken", s.Name, text)
		}
	}
	if p := (Instance{Deploy: true, CAFile: "f"}); p.Check() == nil {
		t.Errorf("%+v is taken", p)
	}
	for _, text := range []string{"kube:?vault-replicas=3", "kube:?vault=https://v&vault-image=x"} {
		spec, _ := result.ParseSpec(text)
		if err := targets.Read(spec, DeploySettings(), &Instance{}); err == nil ||
			!strings.Contains(err.Error(), "needs vault=deploy") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if p := (Instance{Deploy: true}); p.Check() != nil || p.Replicas != 1 || p.Image != DefaultImage {
		t.Errorf("%+v", p)
	}
}

func FuzzInstance(f *testing.F) {
	f.Add("https://v:1", "a:1,")
	f.Fuzz(func(t *testing.T, url, addresses string) {
		var p Instance
		spec := result.Spec{Options: map[string]string{"vault": url, "vault-addresses": addresses}}
		if targets.Read(spec, Settings(), &p) == nil && p.Check() == nil && p.URL != "" {
			if _, err := httpload.NewServer(p.URL, p.Addresses, httpload.Trust{}, false); err != nil {
				t.Errorf("vault=%q, vault-addresses=%q: %v", url, addresses, err)
			}
		}
	})
}
