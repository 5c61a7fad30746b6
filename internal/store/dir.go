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

// A dir is an open results directory. Nothing outside of it is reached through the names in it, which are
// slash-separated. A name that is a link, a FIFO, a device or anything else unexpected is an error that Is [ErrFormat].
type dir struct {
	path string
	root *os.Root
}

func openDir(path string) (dir, error) {
	// The kind before opening, which waits for the other end of a FIFO.
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

// full is a name as a user finds it.
func (d dir) full(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// failed adds the directory to an error of the root, which has the name in it alone.
func (d dir) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("results directory %s: %w", d.path, err)
}

// isFile returns an error unless name is a regular file, and what it is in are directories.
func (d dir) isFile(name string) error {
	if err := d.isDir(path.Dir(name)); err != nil {
		return err
	}
	return d.is(name, 0)
}

// isDir returns an error unless name and what it is in are directories.
func (d dir) isDir(name string) error {
	if name == "." {
		return nil
	}
	if err := d.isDir(path.Dir(name)); err != nil {
		return err
	}
	return d.is(name, fs.ModeDir)
}

func (d dir) is(name string, kind fs.FileMode) error {
	info, err := d.root.Lstat(name)
	if err != nil {
		return d.failed(err)
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

// open opens a file that is there to read it.
func (d dir) open(name string) (*os.File, error) {
	if err := d.isFile(name); err != nil {
		return nil, err
	}
	file, err := d.root.Open(name)
	return file, d.failed(err)
}

// openAppend opens a file that is there to append to it, unless the same file has another name, too, which may be
// outside of the directory.
func (d dir) openAppend(name string) (*os.File, error) {
	if err := d.isFile(name); err != nil {
		return nil, err
	}
	file, err := d.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, d.failed(err)
	}
	info, err := file.Stat()
	if err == nil && linkCount(info) > 1 {
		err = fmt.Errorf("%w: %s has another name, too (a hard link); copy the directory and resume the copy",
			ErrFormat, d.full(name))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// maxRead is the most bytes of a file, or of a line of a file of lines, that are held in memory.
const maxRead = 64 << 20

// errTooLong is that a file or a line has more than maxRead bytes.
var errTooLong = fmt.Errorf("%w: it is longer than %d MiB; restore the file", ErrFormat, maxRead>>20)

// read returns what a file of at most maxRead bytes holds.
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
	return data, d.failed(err)
}

// list returns what is in a directory, in the order of the names.
func (d dir) list(name string) ([]fs.DirEntry, error) {
	if err := d.isDir(name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(d.root.FS(), name)
	return entries, d.failed(err)
}

// mkdir makes a directory unless there is one.
func (d dir) mkdir(name string) error {
	if err := d.isDir(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.failed(d.root.Mkdir(name, 0o755))
}

// removeAll removes a directory, if it is there.
func (d dir) removeAll(name string) error {
	err := d.isDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.failed(d.root.RemoveAll(name))
}

// write makes a file that is not there yet.
func (d dir) write(name string, data []byte) error {
	return d.fill(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// replace writes a file by way of a fresh one, which is not there yet: a crash leaves the old or the new one, an error
// the old one.
func (d dir) replace(name, fresh string, write func(io.Writer) error) error {
	if err := d.isFile(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	buffered := func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<18)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
	if err := d.fill(fresh, buffered); err != nil {
		return err
	}
	if err := d.root.Rename(fresh, name); err != nil {
		return d.failed(errors.Join(err, d.root.Remove(fresh)))
	}
	return d.sync(path.Dir(name))
}

// fill makes a file that is not there yet and has it on disk; an error leaves none.
func (d dir) fill(name string, write func(io.Writer) error) error {
	if err := d.isDir(path.Dir(name)); err != nil {
		return err
	}
	file, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return d.failed(err)
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return d.failed(errors.Join(err, d.root.Remove(name)))
	}
	return nil
}

// sync has on disk what is in a directory.
func (d dir) sync(name string) error {
	file, err := d.root.Open(name)
	if err != nil {
		return d.failed(err)
	}
	return d.failed(errors.Join(file.Sync(), file.Close()))
}
