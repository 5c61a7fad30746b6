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

// The key and the text are as vault-benchmark has them, so that figures can stand beside published ones: RSA with 2048
// bits, PSS with SHA-256, 128 bytes of text, for all four operations.
const (
	keyName  = "knotmeter"
	keyType  = "rsa-2048"
	textSize = 128
)

// The published measurements have two exceptions: signatures that are verified are of PKCS #1 v1.5, and what is
// decrypted has 64 bytes.
const (
	publishedSignature = "pkcs1v15"
	publishedDecrypted = 64
)

// Mounts are made under this prefix, by which leftovers are found.
const (
	mountPrefix      = "knotmeter-"
	mountDescription = "made by knotmeter for a run, and removed after it"
	// mountUntil comes after that, with the time by which the run is over.
	mountUntil = "; in use until "
	// mountSpare is how much longer than its windows a run may take: preparations and its end.
	mountSpare = 15 * time.Minute
)

// A mount is a transit engine of a run's own.
type mount struct {
	by   *replica
	name string
}

// newMount makes a transit engine and its key, for a run that is over at a time.
func newMount(ctx context.Context, by *replica, until time.Time) (*mount, error) {
	m := &mount{by: by, name: mountPrefix + strings.ToLower(rand.Text()[:12])}
	err := by.ask(ctx, "POST", "sys/mounts/"+m.name, map[string]any{"type": "transit",
		"description": mountDescription + mountUntil + until.UTC().Format(time.RFC3339)}, nil)
	if statusOf(err) == http.StatusForbidden {
		return nil, fmt.Errorf("%w; the token needs a policy such as\n%s", err, Policy)
	}
	if err != nil {
		return nil, err
	}
	if err := by.ask(ctx, "POST", m.name+"/keys/"+keyName, map[string]any{"type": keyType}, nil); err != nil {
		return nil, errors.Join(err, m.remove(context.WithoutCancel(ctx)))
	}
	return m, nil
}

// Policy is what a token needs.
const Policy = `path "sys/mounts" { capabilities = ["read"] }
path "sys/mounts/knotmeter-*" { capabilities = ["create", "update", "delete"] }
path "knotmeter-*" { capabilities = ["create", "update"] }
`

// remove removes the engine with its key.
func (m *mount) remove(ctx context.Context) error {
	if err := m.by.ask(ctx, "DELETE", "sys/mounts/"+m.name, nil, nil); err != nil {
		return fmt.Errorf("the mount %s is not removed ('vault secrets disable %s' does it): %w", m.name, m.name, err)
	}
	return nil
}

// leave removes the engine by whichever replica does it. After an election it takes some ten seconds until somebody
// leads, for which this waits as long as a replica is there that is not sealed.
func (m *mount) leave(ctx context.Context, all []*replica) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var err error
	_ = until(ctx, func() error {
		err = m.remove(ctx)
		for i := 0; err != nil && i < len(all); i++ {
			if all[i] != m.by {
				err = (&mount{all[i], m.name}).remove(ctx)
			}
		}
		if err != nil && nobody(ctx, all) {
			cancel()
		}
		return err
	})
	return err
}

// nobody says whether no replica is there that could lead again.
func nobody(ctx context.Context, all []*replica) bool {
	states, errs := roll(ctx, all)
	for i, s := range states {
		if errs[i] == nil && s.Initialized && !s.Sealed {
			return false
		}
	}
	return true
}

// A leftMount is a mount of ours that is there.
type leftMount struct {
	name  string
	until time.Time // by which its run is over; zero if that is not known
}

// kept says why a mount may be in use at a time; empty if it cannot.
func (l leftMount) kept(now time.Time) string {
	switch {
	case l.until.IsZero():
		return "nothing tells whether its run is over"
	case now.Before(l.until):
		return "its run may last until " + l.until.UTC().Format("15:04:05 MST")
	}
	return ""
}

// leftover are the mounts of runs that nobody removed yet, in the order of their names.
func (r *replica) leftover(ctx context.Context) ([]leftMount, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	var mounts struct {
		Data map[string]struct{ Type, Description string }
	}
	if err := r.ask(ctx, "GET", "sys/mounts", nil, &mounts); err != nil {
		return nil, err
	}
	var list []leftMount
	for _, name := range slices.Sorted(maps.Keys(mounts.Data)) {
		is := mounts.Data[name]
		rest, ours := strings.CutPrefix(is.Description, mountDescription)
		if !strings.HasPrefix(name, mountPrefix) || is.Type != "transit" || !ours {
			continue
		}
		until, _ := time.Parse(time.RFC3339, strings.TrimPrefix(rest, mountUntil)) // zero for what is no time
		list = append(list, leftMount{strings.TrimSuffix(name, "/"), until})
	}
	return list, nil
}

// post is a request that writes to a path, with what its answer must contain.
func (m *mount) post(kind int, path string, body any, contains string) (*httpload.Request, error) {
	text, err := json.Marshal(body)
	r := &httpload.Request{Kind: kind, Method: "POST", Path: "/v1/" + m.name + "/" + path + "/" + keyName, Body: text}
	r.Header = append(header(m.by.token, m.by.space), httpload.Field{Name: "Content-Type", Value: "application/json"})
	if contains != "" {
		r.Contains = []byte(contains)
	}
	return r, err
}

// requests are those of the operations, one for each: as in vault-benchmark the text is the same in all, but for those
// of published measurements.
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
	if err := m.by.ask(ctx, "POST", m.name+"/encrypt/"+keyName, toDecrypt, &sealed); err != nil {
		return nil, err
	}
	if err := m.by.ask(ctx, "POST", m.name+"/sign/"+keyName, toVerify, &signed); err != nil {
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
		r, err := m.post(i, name, bodies[name].body, bodies[name].contains)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// A source draws one of its requests for each operation, all with the same share.
type source struct {
	seed  uint64
	names []string
	list  []*httpload.Request
}

func (s *source) Names() []string { return s.names }

// Request depends on the seed and the number of the operation alone, so that every target is asked the same.
func (s *source) Request(n uint64) *httpload.Request {
	if len(s.list) == 1 {
		return s.list[0]
	}
	return s.list[mixed(s.seed+n)%uint64(len(s.list))]
}

// mixed is the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// 2014).
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
