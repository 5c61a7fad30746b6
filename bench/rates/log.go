package rates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// readLog reads the experiments of a log; a torn last line, of a crash, is left out and overwritten
// by nothing: the experiment is measured again.
func readLog(path string) ([]experiment, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var done []experiment
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		var x experiment
		if err := json.Unmarshal(line, &x); err != nil {
			if i == len(lines)-1 {
				return done, os.Truncate(path, int64(len(text)-len(line)))
			}
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		done = append(done, x)
	}
	return done, nil
}

func appendLog(path string, x experiment) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
