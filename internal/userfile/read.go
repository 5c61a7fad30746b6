// Package userfile reads files that users name, up to a size limit, and decodes YAML strictly, with errors that name
// fields and lines.
package userfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Limit is the usual size limit of a file, in bytes.
const Limit = 64 << 20

// ErrFile marks errors about a file that is unsuitable by its kind or size.
var ErrFile = errors.New("unsuitable file")

// Read returns the content of a regular file or a pipe of at most limit bytes. For larger files and other kinds of
// files the error Is [ErrFile].
func Read(name string, limit int64) ([]byte, error) {
	// The kind is checked before opening, because opening a device may have side effects, and again afterwards, because
	// the file may have been replaced.
	info, err := os.Stat(name)
	if e, is := errors.AsType[*fs.PathError](err); is {
		return nil, fmt.Errorf("open %s: %w", name, e.Err)
	}
	if err := check(name, info, err); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err = f.Stat()
	if err := check(name, info, err); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	data.Grow(int(min(info.Size(), limit)) + bytes.MinRead) // one allocation for a file of any size
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > limit {
		return nil, fmt.Errorf("%w: %s is larger than %d MiB", ErrFile, name, limit>>20)
	}
	return data.Bytes(), nil
}

// check returns err, or an error if the file is neither a regular file nor a pipe.
func check(name string, info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		return fmt.Errorf("%w: %s is neither a regular file nor a pipe", ErrFile, name)
	}
	return err
}
