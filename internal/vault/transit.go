package vault

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// The key and the text are those of vault-benchmark, so that results compare with published ones: RSA with 2048 bits,
// PSS with SHA-256, and 128 bytes of text, for all four operations.
const (
	keyName  = "knotmeter"
	keyType  = "rsa-2048"
	textSize = 128
)

// The two exceptions of the published measurements: the signatures to verify are PKCS #1 v1.5, and the text to decrypt
// has 64 bytes.
const (
	publishedSignature = "pkcs1v15"
	publishedDecrypted = 64
)

// Names and descriptions of mounts, by which leftovers are found.
const (
	mountPrefix      = "knotmeter-"
	mountDescription = "made by knotmeter for a run, and removed after it"
	// mountUntil follows mountDescription; the time by which the run is over follows it.
	mountUntil = "; in use until "
)

// Spare is how much longer than its windows a run may take, for preparation and removal.
const Spare = 15 * time.Minute

// A mount is the transit engine of one run.
type mount struct {
	by   *replica // receives the requests that manage it
	name string
}

// newMount creates a transit engine and its key, for a run that is over by until.
func newMount(ctx context.Context, by *replica, until time.Time) (*mount, error) {
	m := &mount{by: by, name: mountPrefix + strings.ToLower(rand.Text()[:12])}
	err := by.send(ctx, "POST", "sys/mounts/"+m.name, map[string]any{"type": "transit",
		"description": mountDescription + mountUntil + until.UTC().Format(time.RFC3339)}, nil)
	if statusOf(err) == http.StatusForbidden {
		return nil, fmt.Errorf("%w; the token needs a policy such as\n%s", err, Policy)
	}
	if err != nil {
		return nil, err
	}
	if err := by.send(ctx, "POST", m.name+"/keys/"+keyName, map[string]any{"type": keyType}, nil); err != nil {
		return nil, errors.Join(err, m.remove(context.WithoutCancel(ctx)))
	}
	return m, nil
}

// Policy is the policy that a token needs.
const Policy = `path "sys/mounts" { capabilities = ["read"] }
path "sys/mounts/knotmeter-*" { capabilities = ["create", "update", "delete"] }
path "knotmeter-*" { capabilities = ["create", "update"] }
`

// remove removes the engine with its key, through m.by.
func (m *mount) remove(ctx context.Context) error {
	if err := m.by.send(ctx, "DELETE", "sys/mounts/"+m.name, nil, nil); err != nil {
		return fmt.Errorf("the mount %s is not removed ('vault secrets disable %s' does it): %w", m.name, m.name, err)
	}
	return nil
}

// removeByAny removes the engine through any of the replicas. An election takes some 10 s, so it retries for up to
// [askTime], as long as a replica is unsealed.
func (m *mount) removeByAny(ctx context.Context, all []*replica) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var err error
	_ = retry(ctx, func() error {
		err = m.remove(ctx)
		for i := 0; err != nil && i < len(all); i++ {
			if all[i] != m.by {
				err = (&mount{all[i], m.name}).remove(ctx)
			}
		}
		if err != nil && !canElect(ctx, all) {
			cancel()
		}
		return err
	})
	return err
}

// canElect reports whether a replica answers that could become the leader.
func canElect(ctx context.Context, all []*replica) bool {
	states, errs := readStates(ctx, all)
	for i, s := range states {
		if errs[i] == nil && s.Initialized && !s.Sealed {
			return true
		}
	}
	return false
}

// A leftMount is a mount of Knotmeter that exists.
type leftMount struct {
	name  string
	until time.Time // when its run is over at the latest; zero if unknown
}

// inUse returns the reason why a run may still use the mount, empty if none can.
func (l leftMount) inUse(now time.Time) string {
	switch {
	case l.until.IsZero():
		return "nothing tells whether its run is over"
	case now.Before(l.until):
		return "its run may last until " + l.until.UTC().Format("15:04:05 MST")
	}
	return ""
}

// leftMounts returns the mounts of all runs, sorted by name.
func (r *replica) leftMounts(ctx context.Context) ([]leftMount, error) {
	ctx, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	var mounts struct {
		Data map[string]struct{ Type, Description string }
	}
	if err := r.send(ctx, "GET", "sys/mounts", nil, &mounts); err != nil {
		return nil, err
	}
	var list []leftMount
	for _, name := range slices.Sorted(maps.Keys(mounts.Data)) {
		is := mounts.Data[name]
		rest, ours := strings.CutPrefix(is.Description, mountDescription)
		if !strings.HasPrefix(name, mountPrefix) || is.Type != "transit" || !ours {
			continue
		}
		until, _ := time.Parse(time.RFC3339, strings.TrimPrefix(rest, mountUntil)) // zero if it is not a time
		list = append(list, leftMount{strings.TrimSuffix(name, "/"), until})
	}
	return list, nil
}

// newRequest returns a POST request to an operation's path; contains, if not empty, is what its response must contain.
func (m *mount) newRequest(kind int, path string, body any, contains string) (*httpload.Request, error) {
	text, err := json.Marshal(body)
	r := &httpload.Request{Kind: kind, Method: "POST", Path: "/v1/" + m.name + "/" + path + "/" + keyName, Body: text}
	r.Header = append(header(m.by.token, m.by.namespace), httpload.Field{Name: "Content-Type", Value: "application/json"})
	if contains != "" {
		r.Contains = []byte(contains)
	}
	return r, err
}

// requests returns one request for each operation in names. As in vault-benchmark, all have the same text, except in
// published measurements.
func (m *mount) requests(ctx context.Context, names []string, published bool) ([]*httpload.Request, error) {
	raw := make([]byte, textSize)
	for i := range raw {
		raw[i] = byte('a' + i%26)
	}
	text := base64.StdEncoding.EncodeToString(raw)
	decrypted, toVerify := text, map[string]any{"input": text}
	if published {
		decrypted = base64.StdEncoding.EncodeToString(raw[:publishedDecrypted])
		toVerify["signature_algorithm"] = publishedSignature
	}
	var sealed, signed struct {
		Data struct{ Ciphertext, Signature string }
	}
	toDecrypt := map[string]any{"plaintext": decrypted}
	if err := m.by.send(ctx, "POST", m.name+"/encrypt/"+keyName, toDecrypt, &sealed); err != nil {
		return nil, err
	}
	if err := m.by.send(ctx, "POST", m.name+"/sign/"+keyName, toVerify, &signed); err != nil {
		return nil, err
	}
	toVerify["signature"] = signed.Data.Signature
	bodies := map[string]struct {
		body     map[string]any
		contains string
	}{
		"encrypt": {map[string]any{"plaintext": text}, `"ciphertext":"vault:v1:`},
		"decrypt": {map[string]any{"ciphertext": sealed.Data.Ciphertext}, `"plaintext":"` + decrypted + `"`},
		"sign":    {map[string]any{"input": text}, `"signature":"vault:v1:`},
		"verify":  {toVerify, `"valid":true`},
	}
	var list []*httpload.Request
	for i, name := range names {
		r, err := m.newRequest(i, name, bodies[name].body, bodies[name].contains)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// A source is a source of requests that draws each of its requests with the same probability.
type source struct {
	seed  uint64
	names []string
	list  []*httpload.Request
}

func (s *source) Names() []string { return s.names }

// Request returns the request of operation n. It depends on the seed and n only, so that every target gets the same.
func (s *source) Request(n uint64) *httpload.Request {
	if len(s.list) == 1 {
		return s.list[0]
	}
	return s.list[splitMix64(s.seed+n)%uint64(len(s.list))]
}

// splitMix64 returns the next output of a SplitMix64 generator with the state x (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014).
func splitMix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
