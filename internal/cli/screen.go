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

// errClosed is the error that the reader of an output is gone.
var errClosed = errors.New("the output was closed")

// An outlet is an output of the program, of which it keeps the first error.
type outlet struct {
	to     io.Writer
	closed func(error) // is called when the reader is gone
	err    error
}

func (o *outlet) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = errClosed
		o.closed(err)
	}
	o.err = cmp.Or(o.err, err)
	return n, err
}

// A screen is a stream that may end on a terminal. Whatever is written to it, text alone arrives: names, events and
// errors come from elsewhere, and their control characters would move the cursor or hide what stands beside them.
//
// What it makes visible is written as in JSON, \u001b, so that JSON stays what it was. Invalid UTF-8 becomes \xff.
type screen struct {
	to      io.Writer
	allowed []sequence // that arrive as they are
	left    []byte     // begin of a character whose rest has not come yet
}

// onScreen puts a screen before each stream that text is written to.
func onScreen(s Streams) Streams {
	s.Out, s.Err = &screen{to: s.Out}, &screen{to: s.Err}
	return s
}

// Write writes text, but for the begin of a character at its end, which waits for the rest.
func (s *screen) Write(p []byte) (int, error) {
	text := append(s.left, p...)
	out, rest := shown(text, s.allowed)
	s.left = slices.Clone(text[rest:])
	if _, err := s.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes what waits for its rest, which does not come any more.
func (s *screen) flush() error {
	if len(s.left) == 0 {
		return nil
	}
	var b []byte
	for _, c := range s.left {
		b = appendByte(b, c)
	}
	s.left = nil
	_, err := s.to.Write(b)
	return err
}

// A sequence is one that controls a terminal, of our own.
type sequence string

// eraseLines removes the line that the cursor is in and so many above.
func eraseLines(above int) sequence {
	return sequence("\r\x1b[K" + strings.Repeat("\x1b[1A\x1b[K", above))
}

// perform writes a sequence past the screen.
func perform(w io.Writer, q sequence) {
	if s, is := w.(*screen); is {
		w = s.to
	}
	_, _ = io.WriteString(w, string(q))
}

// coloured lets through the colours of a report too, whose text is plain without them and ends with a line.
func coloured(w io.Writer) io.Writer {
	s, is := w.(*screen)
	if !is {
		return w
	}
	return &screen{to: s.to, allowed: ofReports}
}

// ofReports are the sequences by which reports are coloured.
var ofReports = []sequence{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;33m", "\x1b[1;36m"}

// shown is text with everything visible but what is allowed, and where the last character begins if it is not whole.
func shown(text []byte, allowed []sequence) (out []byte, rest int) {
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
		case r == '\r' && tail[1] == '\n': // the end of a line of CSV
			out, size = append(out, "\r\n"...), 2
		case r == utf8.RuneError && size == 1:
			out = appendByte(out, tail[0])
		case concealed(r):
			out = appendRune(out, r)
		default:
			out = append(out, tail[:size]...)
		}
		at += size
	}
	return out, len(text)
}

// concealed says whether a character controls a terminal or changes how its neighbours appear.
func concealed(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d' // of scripts, and of pictures
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

// appendByte appends one that is no character.
func appendByte(b []byte, c byte) []byte {
	if c < utf8.RuneSelf {
		return appendRune(b, rune(c))
	}
	return fmt.Appendf(b, `\x%02x`, c)
}
