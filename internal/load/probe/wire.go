package probe

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
)

// A Token is what a run's probes begin with. Only the prober knows it before.
type Token [16]byte

// NewToken is a random one.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

// A Lock is what a responder knows of a token: enough to recognise it, and not enough to know it. It may be read in the
// specification of a pod.
type Lock [sha256.Size]byte

// Lock is that of the token.
func (t Token) Lock() Lock { return sha256.Sum256(t[:]) }

// String is the lock in hexadecimal, as ParseLock reads it.
func (l Lock) String() string { return hex.EncodeToString(l[:]) }

// ParseLock reads a lock.
func ParseLock(text string) (Lock, error) {
	var l Lock
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(l) {
		return l, fmt.Errorf("%.80q is no SHA-256 in hexadecimal", text)
	}
	copy(l[:], raw)
	return l, nil
}

// Opens says whether bytes begin with the token of the lock.
func (l Lock) Opens(b []byte) bool {
	if len(b) < len(Token{}) {
		return false
	}
	sum := sha256.Sum256(b[:len(Token{})])
	return subtle.ConstantTimeCompare(sum[:], l[:]) == 1
}

// A datagram is a token with the number of a probe, in network byte order. Connections begin with a token; then numbers
// follow, which come back.
const (
	numberSize   = 8
	datagramSize = len(Token{}) + numberSize
)

// theEnd is the number by which a prober has a responder end, without notice to anybody.
const theEnd = math.MaxUint64

// datagram is probe n, written into b.
func (t Token) datagram(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b[:0], t[:]...), n)
}

// number is that of a datagram of the token; false if it is none.
func (t Token) number(b []byte) (uint64, bool) {
	if len(b) != datagramSize || Token(b[:len(t)]) != t {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[len(t):]), true
}
