package netload

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// A Token is the secret of one run. Agents receive it on standard input, and every connection begins with it; it is in
// no argument, environment, log or result.
type Token [16]byte

// NewToken returns a random token.
func NewToken() Token {
	var t Token
	rand.Read(t[:]) // never fails: crypto/rand ends the program instead
	return t
}

// MarshalText writes the token as hexadecimal digits.
func (t Token) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, t[:]), nil }

// UnmarshalText reads 32 hexadecimal digits.
func (t *Token) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(t)) {
		return fmt.Errorf("token has %d characters, wanted %d", len(text), hex.EncodedLen(len(t)))
	}
	if _, err := hex.Decode(t[:], text); err != nil {
		return errors.New("token is not hexadecimal") // without the text, which may be a secret
	}
	return nil
}

// String hides the token.
func (t Token) String() string { return "(secret)" }

// GoString hides the token from %#v too.
func (t Token) GoString() string { return "(secret)" }

// Equal compares two tokens in constant time.
func (t Token) Equal(o Token) bool { return subtle.ConstantTimeCompare(t[:], o[:]) == 1 }

// A purpose is the use of a connection.
type purpose byte

// The purposes.
const (
	controlPurpose purpose = 1 // messages between the agents
	flowPurpose    purpose = 2 // one flow of the plan
	cyclePurpose   purpose = 3 // one connect, request, response, close
)

// A hello is the first message on every connection and flow of datagrams.
type hello struct {
	Purpose purpose
	Flow    uint16 // index in the plan
	Token   Token
}

// helloSize is the size of a hello in bytes.
const helloSize = 24

const (
	helloMagic = "KNM1"
	ackMagic   = "KNM+"
)

// append appends the encoded hello to b.
func (h hello) append(b []byte) []byte {
	b = append(b, helloMagic[:]...)
	b = append(b, byte(h.Purpose), 0)
	b = binary.BigEndian.AppendUint16(b, h.Flow)
	return append(b, h.Token[:]...)
}

// errHello is returned for an opening that is not a valid hello.
var errHello = errors.New("not the opening of a run")

// parseHello decodes a hello; it does not compare the token.
func parseHello(b []byte) (hello, error) {
	if len(b) < helloSize || string(b[:4]) != helloMagic || b[5] != 0 {
		return hello{}, errHello
	}
	h := hello{Purpose: purpose(b[4]), Flow: binary.BigEndian.Uint16(b[6:8])}
	if h.Purpose < controlPurpose || h.Purpose > cyclePurpose {
		return hello{}, errHello
	}
	copy(h.Token[:], b[8:helloSize])
	return h, nil
}

// ackSize is the size of the response to the hello of a flow, in bytes.
const ackSize = 6

func appendAck(b []byte, flow uint16) []byte {
	return binary.BigEndian.AppendUint16(append(b, ackMagic[:]...), flow)
}

func isAck(b []byte, flow uint16) bool {
	return len(b) == ackSize && string(b[:4]) == ackMagic && binary.BigEndian.Uint16(b[4:]) == flow
}

// MinDatagram is the smallest payload of udp-stream in bytes: every datagram begins with its number and its sending
// time, in ns since the sender's run began.
const MinDatagram = 16

func putDatagram(b []byte, seq uint64, sent int64) {
	binary.BigEndian.PutUint64(b, seq)
	binary.BigEndian.PutUint64(b[8:], uint64(sent))
}

func getDatagram(b []byte) (seq uint64, sent int64) {
	return binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))
}
