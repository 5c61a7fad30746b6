package family

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Printout is what a program prints, as long as that is not more than it may be.
type Printout struct {
	bytes.Buffer
	Program string
	Most    int // bytes
}

func (p *Printout) Write(text []byte) (int, error) {
	if p.Len()+len(text) > p.Most {
		return 0, fmt.Errorf("%s printed more than %d MiB", p.Program, p.Most>>20)
	}
	return p.Buffer.Write(text)
}

// Excerpt says how something begins that a program printed, and that cannot be read.
func Excerpt(text []byte) string {
	if len(bytes.TrimSpace(text)) == 0 {
		return "it printed nothing"
	}
	return fmt.Sprintf("it begins with %q", strings.ToValidUTF8(string(text[:min(len(text), 80)]), "?"))
}

// OrUnknown is a text without blanks around it, or that it is not known.
func OrUnknown(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return result.Unknown
	}
	return text
}
