package webapp

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
)

// A template is text with placeholders, such as `{"id": "{{uuid}}", "name": "item-{{n}}", "text": "{{random 64}}"}`:
// {{n}} is the number of the operation, {{random N}} are N random hexadecimal digits, and {{uuid}} is a random UUID.
type template struct {
	parts  []part
	static bool // without placeholders
}

type part struct {
	text        string
	placeholder string // n, random or uuid; empty: text
	digits      int    // of random, hexadecimal
}

// maxRandomDigits is the highest number of digits of a {{random N}}.
const maxRandomDigits = 1 << 20

var placeholders = regexp.MustCompile(`\{\{\s*(n|uuid|random\s+\d+)\s*\}\}`)

// withoutPlaceholders returns the text without its placeholders.
func withoutPlaceholders(text string) string { return placeholders.ReplaceAllString(text, "") }

// compile parses a template. Any other {{ is an error.
func compile(text string) (template, error) {
	var t template
	literal := func(text string) error {
		t.parts = append(t.parts, part{text: text})
		if i := strings.Index(text, "{{"); i >= 0 {
			return fmt.Errorf("%.30q is not {{n}}, {{random N}} or {{uuid}}", text[i:])
		}
		return nil
	}
	last := 0
	for _, at := range placeholders.FindAllStringSubmatchIndex(text, -1) {
		if err := literal(text[last:at[0]]); err != nil {
			return t, err
		}
		p := part{placeholder: text[at[2]:at[3]]}
		if number, ok := strings.CutPrefix(p.placeholder, "random"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil || n < 1 || n > maxRandomDigits {
				return t, fmt.Errorf("%s: there are 1 to %d random hexadecimal digits", text[at[0]:at[1]], maxRandomDigits)
			}
			p.placeholder, p.digits = "random", n
		}
		t.parts = append(t.parts, p)
		last = at[1]
	}
	err := literal(text[last:])
	t.static = len(t.parts) == 1 // literal adds a part, perhaps an empty one, after each placeholder
	return t, err
}

// render returns the text of operation n. Random parts are drawn from random, which the caller seeds with the
// operation, so that every target gets the same requests.
func (t template) render(n uint64, random *rand.Rand) []byte {
	var b []byte
	for _, p := range t.parts {
		switch p.placeholder {
		case "":
			b = append(b, p.text...)
		case "n":
			b = strconv.AppendUint(b, n, 10)
		case "uuid":
			b = append(b, uuid(random)...)
		default:
			b = append(b, hexDigits(random, p.digits)...)
		}
	}
	return b
}

func hexDigits(random *rand.Rand, n int) string {
	raw := make([]byte, (n+1)/2)
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	return hex.EncodeToString(raw)[:n]
}

// uuid returns a random UUID (RFC 9562, version 4).
func uuid(random *rand.Rand) string {
	h := []byte(hexDigits(random, 32))
	h[12] = '4'
	h[16] = "89ab"[random.IntN(4)]
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}
