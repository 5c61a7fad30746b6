//go:build linux

package computeload

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// Sizes of one operation.
const (
	message    = 16 << 10 // bytes of a message that is encrypted or hashed
	textSize   = 64 << 10 // bytes of a text that is compressed
	sortSize   = 4096     // numbers that are sorted
	matrixSize = 192      // rows and columns
)

// pattern returns bytes that every implementation can make: i times 7 plus i divided by 256.
func pattern(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// A cipherLoop encrypts the same message with the same nonce again and again. The last tag proves each result.
type cipherLoop struct {
	aead          cipher.AEAD
	plain, sealed []byte
	nonce         []byte
	wrong         bool
}

// cipherTag is the authentication tag of the message under a key of zeros and a nonce of zeros, by OpenSSL.
const cipherTag = "a9da05c6b22aebf41b45f17d46f49798"

func startCipher(place) (loop, error) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &cipherLoop{aead: aead, plain: pattern(message), nonce: make([]byte, aead.NonceSize()),
		sealed: make([]byte, 0, message+aead.Overhead())}, nil
}

func (c *cipherLoop) run(n int, _ *netload.Histogram) {
	for range n {
		c.sealed = c.aead.Seal(c.sealed[:0], c.nonce, c.plain, nil)
	}
	c.wrong = c.wrong || hex.EncodeToString(c.sealed[message:]) != cipherTag
}

func (c *cipherLoop) check() error {
	if c.wrong {
		return errors.New("a message was encrypted wrongly")
	}
	return nil
}

// A hashLoop hashes the same message again and again.
type hashLoop struct {
	message []byte
	sum     [sha256.Size]byte
	wrong   bool
}

// hashSum is the SHA-256 of the message, by sha256sum.
const hashSum = "5252abae92836caa122f8d6c078aa2487dc32b17e1b204a7cc022809faebc192"

func startHash(place) (loop, error) { return &hashLoop{message: pattern(message)}, nil }

func (h *hashLoop) run(n int, _ *netload.Histogram) {
	for range n {
		h.sum = sha256.Sum256(h.message)
	}
	h.wrong = h.wrong || hex.EncodeToString(h.sum[:]) != hashSum
}

func (h *hashLoop) check() error {
	if h.wrong {
		return errors.New("a message was hashed wrongly")
	}
	return nil
}

// A signLoop signs the same hash with a new key. Signatures differ, since they contain random numbers.
type signLoop struct {
	key       *ecdsa.PrivateKey
	hash      [sha256.Size]byte
	signature []byte
	err       error
	verifies  bool // it verifies the signature instead of signing
}

func startSign(place) (loop, error) { return newSignLoop(false) }

func startVerify(place) (loop, error) { return newSignLoop(true) }

func newSignLoop(verifies bool) (loop, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	s := &signLoop{key: key, hash: sha256.Sum256(pattern(message)), verifies: verifies}
	s.signature, err = ecdsa.SignASN1(rand.Reader, key, s.hash[:])
	return s, err
}

func (s *signLoop) run(n int, _ *netload.Histogram) {
	for range n {
		if s.verifies {
			if !ecdsa.VerifyASN1(&s.key.PublicKey, s.hash[:], s.signature) && s.err == nil {
				s.err = errors.New("a good signature was rejected")
			}
			continue
		}
		signature, err := ecdsa.SignASN1(rand.Reader, s.key, s.hash[:])
		if err != nil && s.err == nil {
			s.err = fmt.Errorf("sign: %w", err)
		}
		s.signature = signature
	}
}

func (s *signLoop) check() error {
	other := sha256.Sum256(s.signature)
	switch {
	case s.err != nil:
		return s.err
	case !ecdsa.VerifyASN1(&s.key.PublicKey, s.hash[:], s.signature):
		return errors.New("a signature is wrong")
	case ecdsa.VerifyASN1(&s.key.PublicKey, other[:], s.signature):
		return errors.New("a signature of something else was accepted")
	}
	return nil
}

// A deflateLoop compresses the same text again and again.
type deflateLoop struct {
	text   []byte
	writer *flate.Writer
	out    bytes.Buffer
	size   int // of the first result; all have it
	err    error
}

func startDeflate(place) (loop, error) {
	d := &deflateLoop{text: text(textSize)}
	var err error
	d.writer, err = flate.NewWriter(&d.out, flate.DefaultCompression)
	return d, err
}

// text returns words in random order, by a fixed seed. They shrink to about a third, as logs and documents do.
func text(size int) []byte {
	words := strings.Fields("node pod service endpoint volume claim class policy address route tunnel packet flow " +
		"request response latency throughput error warning started ready failed scheduled created deleted updated " +
		"watched list get")
	r := mathrand.New(mathrand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < size {
		fmt.Fprintf(&b, "%s %s/%d ", words[r.IntN(len(words))], words[r.IntN(len(words))], r.IntN(1000))
	}
	return b.Bytes()[:size]
}

func (d *deflateLoop) run(n int, _ *netload.Histogram) {
	for range n {
		d.out.Reset()
		d.writer.Reset(&d.out)
		_, err := d.writer.Write(d.text)
		if err = errors.Join(err, d.writer.Close()); err != nil && d.err == nil {
			d.err = fmt.Errorf("compress: %w", err)
		}
		if d.size == 0 {
			d.size = d.out.Len()
		}
		if d.out.Len() != d.size && d.err == nil {
			d.err = fmt.Errorf("a text of %d bytes was compressed to %d bytes, and then to %d", textSize, d.size, d.out.Len())
		}
	}
}

func (d *deflateLoop) check() error {
	if d.err != nil {
		return d.err
	}
	back, err := io.ReadAll(flate.NewReader(&d.out))
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	if !bytes.Equal(back, d.text) {
		return errors.New("the compressed text is another when it is decompressed")
	}
	return nil
}

// A sortLoop sorts copies of the same numbers.
type sortLoop struct {
	numbers, sorted []uint64
	sum             uint64
	wrong           bool
}

func startSort(place) (loop, error) {
	r := mathrand.New(mathrand.NewPCG(3, 4))
	s := &sortLoop{sorted: make([]uint64, sortSize)}
	for range sortSize {
		n := r.Uint64()
		s.numbers, s.sum = append(s.numbers, n), s.sum+n
	}
	return s, nil
}

func (s *sortLoop) run(n int, _ *netload.Histogram) {
	for range n {
		copy(s.sorted, s.numbers)
		slices.Sort(s.sorted)
	}
	s.wrong = s.wrong || s.sorted[0] > s.sorted[1] || s.sorted[sortSize-2] > s.sorted[sortSize-1]
}

func (s *sortLoop) check() error {
	var sum uint64
	for _, n := range s.sorted {
		sum += n
	}
	if s.wrong || !slices.IsSorted(s.sorted) || sum != s.sum {
		return errors.New("numbers were sorted wrongly")
	}
	return nil
}

// A matrixLoop multiplies the same two matrices, of small whole numbers, so that every order of additions has the same
// result.
type matrixLoop struct{ a, b, product [][]float64 }

func startMatrix(place) (loop, error) {
	m := &matrixLoop{}
	for i := range matrixSize {
		a, b := make([]float64, matrixSize), make([]float64, matrixSize)
		for j := range matrixSize {
			a[j], b[j] = float64((i*3+j)%17), float64((i+j*5)%13)
		}
		m.a, m.b, m.product = append(m.a, a), append(m.b, b), append(m.product, make([]float64, matrixSize))
	}
	return m, nil
}

func (m *matrixLoop) run(n int, _ *netload.Histogram) {
	for range n {
		for i, row := range m.a {
			product := m.product[i]
			clear(product)
			for k, factor := range row {
				other := m.b[k][:len(product)]
				for j := range product {
					product[j] += factor * other[j]
				}
			}
		}
	}
}

// check compares the sums of the product's rows with the first matrix times the sums of the second one's rows.
func (m *matrixLoop) check() error {
	total := func(row []float64) (sum float64) {
		for _, v := range row {
			sum += v
		}
		return sum
	}
	for i, row := range m.a {
		want := 0.0
		for k, factor := range row {
			want += factor * total(m.b[k])
		}
		if got := total(m.product[i]); got != want || want == 0 {
			return fmt.Errorf("row %d of a matrix product adds up to %g and not %g", i, got, want)
		}
	}
	return nil
}

// A jsonLoop decodes a document and encodes it again.
type jsonLoop struct {
	document []byte
	err      error
}

// A pod is the document: an object like those of Kubernetes.
type pod struct {
	Kind       string            `json:"kind"`
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels"`
	Containers []container       `json:"containers"`
	Ready      bool              `json:"ready"`
	Phase      string            `json:"phase,omitempty"`
	Extra      map[string]any    `json:"extra"`
}

type container struct {
	Name     string             `json:"name"`
	Image    string             `json:"image"`
	Args     []string           `json:"args"`
	Ports    []int              `json:"ports"`
	Requests map[string]float64 `json:"requests"`
}

func startJSON(place) (loop, error) {
	p := pod{Kind: "Pod", Name: "example-7f9c6d5b8d-x2x7q", Labels: map[string]string{}, Ready: true,
		Extra: map[string]any{"conditions": []any{"Ready", "Initialized", 3.5, nil, true}}}
	for i := range 8 {
		p.Labels[fmt.Sprintf("example.org/label-%d", i)] = fmt.Sprintf("value \"%d\" <&>", i)
		p.Containers = append(p.Containers, container{Name: fmt.Sprintf("container-%d", i),
			Image: "registry.example.org/images/program:v1.2.3", Args: []string{"--verbose", "--listen=:8080"},
			Ports: []int{8080 + i, 9090 + i}, Requests: map[string]float64{"cpu": 0.25, "memory": 6.7e7 + float64(i)}})
	}
	document, err := json.Marshal(p)
	return &jsonLoop{document: document}, err
}

func (j *jsonLoop) run(n int, _ *netload.Histogram) {
	for range n {
		var p pod
		err := json.Unmarshal(j.document, &p)
		again, encodeErr := json.Marshal(p)
		if err = errors.Join(err, encodeErr); err == nil && !bytes.Equal(again, j.document) {
			err = errors.New("a document is another one after decoding and encoding it")
		}
		if j.err == nil {
			j.err = err
		}
	}
}

func (j *jsonLoop) check() error { return j.err }
