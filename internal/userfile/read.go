// Package userfile reads the files that users name: no more than a limit, and nothing that never ends. What they hold
// as YAML it decodes strictly, with errors that name fields and lines of the file.
package userfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Limit is how large a file may be, unless its reader says otherwise.
const Limit = 64 << 20

// ErrFile is that a file cannot be what it is read for, whatever is in it.
var ErrFile = errors.New("unsuitable file")

// Read reads a regular file or a pipe of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	// Before it is opened, since a device may do something then; and again, since names change their meaning.
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
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: %s is larger than %d MiB", ErrFile, name, limit>>20)
	}
	return data, nil
}

// check is the error of looking at a file, or what is wrong with the file.
func check(name string, info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		return fmt.Errorf("%w: %s is neither a regular file nor a pipe", ErrFile, name)
	}
	return err
}
