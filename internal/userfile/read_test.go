package userfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	const limit = 1 << 20
	dir := t.TempDir()
	for name, size := range map[string]int{"empty": 0, "small": 10, "full": limit, "large": limit + 1} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := Read(file, limit)
		if size <= limit && (err != nil || len(data) != size) || size > limit && !errors.Is(err, ErrFile) {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	for name, want := range map[string]error{os.DevNull: ErrFile,
		"/dev/zero": ErrFile, dir: ErrFile, filepath.Join(dir, "none"): fs.ErrNotExist} {
		if _, err := Read(name, limit); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadPipe checks that a pipe can be read, as shells pass it with <(command).
func TestReadPipe(t *testing.T) {
	for size, want := range map[int]error{10: nil, 2000: ErrFile} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer w.Close()
			_, _ = w.Write(bytes.Repeat([]byte("x"), size)) // the reader stops at its limit
		}()
		data, err := Read(fmt.Sprintf("/dev/fd/%d", r.Fd()), 1000)
		if !errors.Is(err, want) || want == nil && len(data) != size {
			t.Errorf("%d bytes: %d, %v", size, len(data), err)
		}
		r.Close()
	}
}
