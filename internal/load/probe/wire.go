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

// A Token is the secret that a run's probes begin with. Initially only the prober knows it.
type Token [16]byte

// NewToken returns a random token.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

// A TokenHash is the hash of a token, by which a responder recognizes it. It is not secret: it may be part of a pod's
// specification.
type TokenHash [sha256.Size]byte

// Hash returns the hash of the token.
func (t Token) Hash() TokenHash { return sha256.Sum256(t[:]) }

// String returns the hash in hexadecimal, as ParseTokenHash reads it.
func (h TokenHash) String() string { return hex.EncodeToString(h[:]) }

// ParseTokenHash reads a hash from hexadecimal.
func ParseTokenHash(text string) (TokenHash, error) {
	var h TokenHash
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(h) {
		return h, fmt.Errorf("%.80q is no SHA-256 in hexadecimal", text)
	}
	copy(h[:], raw)
	return h, nil
}

// Matches reports whether b begins with the token of the hash.
func (h TokenHash) Matches(b []byte) bool {
	if len(b) < len(Token{}) {
		return false
	}
	sum := sha256.Sum256(b[:len(Token{})])
	return subtle.ConstantTimeCompare(sum[:], h[:]) == 1
}

// A datagram is a token followed by the number of a probe, in network byte order. A connection begins with a token,
// which numbers follow; the responder sends the numbers back.
const (
	numberSize   = 8
	datagramSize = len(Token{}) + numberSize
)

// stopNumber is the number that makes a responder end.
const stopNumber = math.MaxUint64

// datagram writes probe n into b and returns it.
func (t Token) datagram(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b[:0], t[:]...), n)
}

// number returns the number in a datagram, and false if b is not a datagram with the token.
func (t Token) number(b []byte) (uint64, bool) {
	if len(b) != datagramSize || Token(b[:len(t)]) != t {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[len(t):]), true
}
