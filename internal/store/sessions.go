package store

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/knotmeter/knotmeter/internal/result"
)

// parseSessions reads the whole lines of sessions.ndjson, and returns how many bytes they are and whether there is more
// after the last newline. The sessions are numbered in order.
func parseSessions(name string, in io.Reader) (sessions []result.Session, size int64, torn bool, err error) {
	size, torn, err = eachLine(name, in, func(number int, line []byte) error {
		var s result.Session
		err := json.Unmarshal(line, &s)
		if err != nil || s.Schema != result.SessionSchema {
			return brokenLine(name, number, line, result.SessionSchema, err)
		}
		if s.Number != number {
			return fmt.Errorf("%s:%d: %w: session %d stands here; restore the file", name, number, ErrFormat, s.Number)
		}
		sessions = append(sessions, s)
		return nil
	})
	return sessions, size, torn, err
}
