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
	if err == nil {
		err = check(name, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		err = check(name, info)
	}
	if err != nil {
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

func check(name string, info fs.FileInfo) error {
	if mode := info.Mode(); !mode.IsRegular() && mode&fs.ModeNamedPipe == 0 {
		return fmt.Errorf("%w: %s is neither a regular file nor a pipe", ErrFile, name)
	}
	return nil
}
