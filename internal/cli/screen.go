package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// errClosed is the error about an output whose reader has closed it.
var errClosed = errors.New("the output was closed")

// An outputWriter writes to an output of the program and keeps the first error.
type outputWriter struct {
	to      io.Writer
	onClose func(error) // called when the reader has closed the output
	err     error
}

func (o *outputWriter) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errClosed
		o.onClose(err)
	}
	o.err = cmp.Or(o.err, err)
	return n, err
}

// A sanitizer is a writer for a stream that may be a terminal. It escapes control characters: names, events and errors
// come from elsewhere and could move the cursor or hide text.
//
// Control characters are escaped as in JSON, \u001b, so that JSON documents keep their meaning. Invalid UTF-8 becomes
// \xff.
type sanitizer struct {
	to      io.Writer
	allowed []sequence // sequences that are not escaped
	partial []byte     // beginning of a character whose rest is not written yet
}

// sanitized returns the streams with a sanitizer on each output.
func sanitized(s Streams) Streams {
	s.Out, s.Err = &sanitizer{to: s.Out}, &sanitizer{to: s.Err}
	return s
}

// Write writes text, except an incomplete character at its end, which it keeps until the rest is written.
func (s *sanitizer) Write(p []byte) (int, error) {
	text := append(s.partial, p...)
	out, rest := escape(text, s.allowed)
	s.partial = slices.Clone(text[rest:])
	if _, err := s.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes an incomplete character, escaped.
func (s *sanitizer) flush() error {
	if len(s.partial) == 0 {
		return nil
	}
	var b []byte
	for _, c := range s.partial {
		b = appendByte(b, c)
	}
	s.partial = nil
	_, err := s.to.Write(b)
	return err
}

// A sequence is a control sequence for a terminal that the program itself writes.
type sequence string

// eraseLines returns a sequence that erases the cursor's line and the given number of lines above it.
func eraseLines(above int) sequence {
	return sequence("\r\x1b[K" + strings.Repeat("\x1b[1A\x1b[K", above))
}

// writeSequence writes a sequence without escaping it.
func writeSequence(w io.Writer, q sequence) {
	if s, is := w.(*sanitizer); is {
		w = s.to
	}
	_, _ = io.WriteString(w, string(q))
}

// coloured returns a writer that does not escape the colours of reports. Its text must end with a complete line.
func coloured(w io.Writer) io.Writer {
	s, is := w.(*sanitizer)
	if !is {
		return w
	}
	return &sanitizer{to: s.to, allowed: reportColours}
}

// reportColours are the sequences that colour reports.
var reportColours = []sequence{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;33m", "\x1b[1;36m"}

// escape returns text with control characters escaped, except allowed sequences, and the index at which an incomplete
// last character begins.
func escape(text []byte, allowed []sequence) (out []byte, rest int) {
	out = make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		tail := text[at:]
		begins := func(q sequence) bool { return bytes.HasPrefix(tail, []byte(q)) }
		if i := slices.IndexFunc(allowed, begins); i >= 0 {
			out, at = append(out, allowed[i]...), at+len(allowed[i])
			continue
		}
		r, size := utf8.DecodeRune(tail)
		switch {
		case !utf8.FullRune(tail), len(tail) == 1 && r == '\r':
			return out, at
		case r == '\r' && tail[1] == '\n': // a line end in CSV
			out, size = append(out, "\r\n"...), 2
		case r == utf8.RuneError && size == 1:
			out = appendByte(out, tail[0])
		case isControl(r):
			out = appendRune(out, r)
		default:
			out = append(out, tail[:size]...)
		}
		at += size
	}
	return out, len(text)
}

// isControl reports whether a character controls a terminal or changes how its neighbours are displayed.
func isControl(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d' // needed in some scripts, and in emoji
	switch r {
	case '\n', '\t', nonJoiner, joiner:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func appendRune(b []byte, r rune) []byte {
	for _, unit := range utf16.AppendRune(nil, r) {
		b = fmt.Appendf(b, `\u%04x`, unit)
	}
	return b
}

// appendByte appends the escape sequence of a byte that is not part of a character.
func appendByte(b []byte, c byte) []byte {
	if c < utf8.RuneSelf {
		return appendRune(b, rune(c))
	}
	return fmt.Appendf(b, `\x%02x`, c)
}
