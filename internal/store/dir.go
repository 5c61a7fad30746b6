package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// A dir is an open results directory. Names in it are slash-separated and never reach outside of it. If a name is a
// link, a FIFO, a device or anything else unexpected, methods return an error that wraps [ErrFormat].
type dir struct {
	path string
	root *os.Root
}

func openDir(path string) (dir, error) {
	// Checked before opening, because opening a FIFO waits for its other end.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dir{}, fmt.Errorf("there is no results directory %s: %w", path, fs.ErrNotExist)
	case err == nil && !info.IsDir():
		return dir{}, fmt.Errorf("%s is %s, not a results directory", path, kindName(info.Mode()))
	case err != nil:
		return dir{}, fmt.Errorf("results directory: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return dir{}, fmt.Errorf("results directory: %w", err)
	}
	return dir{path, root}, nil
}

func (d dir) close() error { return d.root.Close() }

// full returns the path of a name, for users.
func (d dir) full(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// wrap adds the directory to an error of the root, which contains only the name in it.
func (d dir) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("results directory %s: %w", d.path, err)
}

// checkFile returns an error unless name is a regular file and its parents are directories.
func (d dir) checkFile(name string) error {
	if err := d.checkDir(path.Dir(name)); err != nil {
		return err
	}
	return d.checkKind(name, 0)
}

// checkDir returns an error unless name and its parents are directories.
func (d dir) checkDir(name string) error {
	if name == "." {
		return nil
	}
	if err := d.checkDir(path.Dir(name)); err != nil {
		return err
	}
	return d.checkKind(name, fs.ModeDir)
}

func (d dir) checkKind(name string, kind fs.FileMode) error {
	info, err := d.root.Lstat(name)
	if err != nil {
		return d.wrap(err)
	}
	if info.Mode().Type() != kind {
		return fmt.Errorf("%w: %s is %s, not %s; remove it", ErrFormat, d.full(name), kindName(info.Mode()), kindName(kind))
	}
	return nil
}

func kindName(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// open opens an existing file for reading.
func (d dir) open(name string) (*os.File, error) {
	if err := d.checkFile(name); err != nil {
		return nil, err
	}
	file, err := d.root.Open(name)
	return file, d.wrap(err)
}

// openAppend opens an existing file for appending. A file with a second hard link is an error, since the link may be
// outside of the directory.
func (d dir) openAppend(name string) (*os.File, error) {
	if err := d.checkFile(name); err != nil {
		return nil, err
	}
	file, err := d.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, d.wrap(err)
	}
	info, err := file.Stat()
	if err == nil && linkCount(info) > 1 {
		err = fmt.Errorf("%w: %s has another name, too (a hard link); copy the directory and resume the copy",
			ErrFormat, d.full(name))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// maxRead is the largest size in bytes of a file, or of a line of an NDJSON file, that is held in memory.
const maxRead = 64 << 20

// errTooLong is the error about a file or line of more than maxRead bytes.
var errTooLong = fmt.Errorf("%w: it is longer than %d MiB; restore the file", ErrFormat, maxRead>>20)

// read returns the content of a file of at most maxRead bytes.
func (d dir) read(name string) ([]byte, error) {
	file, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRead+1))
	if err == nil && len(data) > maxRead {
		return nil, fmt.Errorf("%s: %w", d.full(name), errTooLong)
	}
	return data, d.wrap(err)
}

// list returns the entries of a directory, sorted by name.
func (d dir) list(name string) ([]fs.DirEntry, error) {
	if err := d.checkDir(name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(d.root.FS(), name)
	return entries, d.wrap(err)
}

// mkdir makes a directory unless it exists.
func (d dir) mkdir(name string) error {
	if err := d.checkDir(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.wrap(d.root.Mkdir(name, 0o755))
}

// removeAll removes a directory if it exists.
func (d dir) removeAll(name string) error {
	err := d.checkDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.wrap(d.root.RemoveAll(name))
}

// create creates a file, which must not exist.
func (d dir) create(name string, data []byte) error {
	return d.createSynced(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// replace writes a file under the name fresh, which must not exist, and renames it to name. A crash leaves the old or
// the new file, an error the old one.
func (d dir) replace(name, fresh string, write func(io.Writer) error) error {
	if err := d.checkFile(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	buffered := func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<18)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
	if err := d.createSynced(fresh, buffered); err != nil {
		return err
	}
	if err := d.root.Rename(fresh, name); err != nil {
		return d.wrap(errors.Join(err, d.root.Remove(fresh)))
	}
	return d.sync(path.Dir(name))
}

// createSynced creates a file, which must not exist, and syncs it. After an error the file does not exist.
func (d dir) createSynced(name string, write func(io.Writer) error) error {
	if err := d.checkDir(path.Dir(name)); err != nil {
		return err
	}
	file, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return d.wrap(err)
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return d.wrap(errors.Join(err, d.root.Remove(name)))
	}
	return nil
}

// sync syncs the entries of a directory.
func (d dir) sync(name string) error {
	file, err := d.root.Open(name)
	if err != nil {
		return d.wrap(err)
	}
	return d.wrap(errors.Join(file.Sync(), file.Close()))
}
