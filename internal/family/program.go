package family

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Printout is a buffer for a program's output with a size limit, beyond which Write fails.
type Printout struct {
	bytes.Buffer
	Program  string
	MaxBytes int // limit, bytes
}

func (p *Printout) Write(text []byte) (int, error) {
	if p.Len()+len(text) > p.MaxBytes {
		return 0, fmt.Errorf("%s printed more than %d MiB", p.Program, p.MaxBytes>>20)
	}
	return p.Buffer.Write(text)
}

// Excerpt returns a phrase that quotes the beginning of a program's output, for errors about output that cannot be
// parsed.
func Excerpt(text []byte) string {
	if len(bytes.TrimSpace(text)) == 0 {
		return "it printed nothing"
	}
	return fmt.Sprintf("it begins with %q", strings.ToValidUTF8(string(text[:min(len(text), 80)]), "?"))
}

// OrUnknown returns text without surrounding white space, or result.Unknown if it is empty.
func OrUnknown(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return result.Unknown
	}
	return text
}
