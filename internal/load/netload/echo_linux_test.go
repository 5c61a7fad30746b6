package netload

import (
	"slices"
	"testing"
)

// TestChecksum checks the example of RFC 1071, an odd length, and that a request with its checksum sums up to all ones.
func TestChecksum(t *testing.T) {
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if got := checksum(b); got != ^uint16(0xddf2) {
		t.Errorf("checksum %04x", got)
	}
	if got := checksum([]byte{1, 2, 3}); got != ^uint16(0x0402) {
		t.Errorf("checksum of three bytes %04x", got)
	}
	e := &echo{raw: true, request: make([]byte, icmpHeader+3)}
	e.request[0] = echoRequest
	for range 3 {
		e.next()
		if checksum(e.request) != 0 {
			t.Errorf("the request %x does not sum up", e.request)
		}
	}
}

// TestEchoAnswers checks that a response counts only if it has the number of the last request, and on a raw socket also
// its identifier.
func TestEchoAnswers(t *testing.T) {
	for _, e := range []*echo{{}, {ipv6: true}, {raw: true}, {raw: true, ipv6: true}} {
		e.request = make([]byte, icmpHeader+4)
		e.request[echoIdentity] = 7
		e.next()
		e.next()
		response := slices.Clone(e.request)
		if e.ipv6 {
			response[0] = echoReply6
		} else {
			response[0] = echoReply
		}
		for name, test := range map[string]struct {
			spoil func(b []byte) []byte
			want  bool
		}{
			"the response":     {func(b []byte) []byte { return b }, true},
			"an earlier one":   {func(b []byte) []byte { b[echoNumber+1]--; return b }, false},
			"another's":        {func(b []byte) []byte { b[echoIdentity]++; return b }, !e.raw},
			"a request":        {func(b []byte) []byte { b[0] = echoRequest; return b }, false},
			"cut off":          {func(b []byte) []byte { return b[:len(b)-1] }, false},
			"nothing":          {func([]byte) []byte { return nil }, false},
			"a header's start": {func(b []byte) []byte { return b[:1] }, false},
		} {
			b := test.spoil(slices.Clone(response))
			if e.raw && !e.ipv6 {
				header := make([]byte, 24) // with an option
				header[0] = 0x46
				b = append(header, b...)
			}
			if got := e.isResponse(b); got != test.want {
				t.Errorf("raw %v, IPv6 %v: %s is a response: %v", e.raw, e.ipv6, name, got)
			}
		}
	}
}
