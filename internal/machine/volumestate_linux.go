package machine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// InspectVolume describes a directory or block device, with the reason in Error if it cannot be measured.
func InspectVolume(path string) *VolumeState {
	v := statVolume(path)
	if v.Error != "" {
		return v
	}
	var err error
	if v.Content, err = Content(path); err != nil {
		v.Error = fmt.Sprintf("what is on %s already cannot be read: %v", path, err)
	}
	return v
}

// statVolume describes all but the content.
func statVolume(path string) *VolumeState {
	v := &VolumeState{Facts: Volume(path)}
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		v.Error = fmt.Sprintf("%s is not there: %v", path, err)
		return v
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFBLK {
		v.Device = true
		v.Error = v.openDevice(path, stat)
		return v
	}
	var root unix.Stat_t
	v.Mounted = unix.Stat("/", &root) != nil || root.Dev != stat.Dev
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) == nil {
		v.Size, v.Free = int64(fs.Blocks)*int64(fs.Bsize), int64(fs.Bavail)*int64(fs.Bsize)
	}
	switch err := unix.Access(path, unix.W_OK); {
	case errors.Is(err, unix.EROFS):
		v.Error = fmt.Sprintf("%s is mounted read-only, and what is read has to be written first", path)
	case err != nil:
		v.Error = accessDenied(path, "written", stat)
	}
	return v
}

// openDevice opens a block device and sets its size, which is the offset of its end. It returns the reason if that
// fails.
func (v *VolumeState) openDevice(path string, stat unix.Stat_t) string {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Sprintf("%s is read-only, and what is read has to be written first", path)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		v.Denied = true
		return accessDenied(path, "opened", stat)
	case err != nil:
		return fmt.Sprintf("%s cannot be opened: %v", path, err)
	}
	defer unix.Close(fd)
	end, err := unix.Seek(fd, 0, unix.SEEK_END)
	if err != nil {
		return fmt.Sprintf("the size of %s is unknown: %v", path, err)
	}
	v.Size, v.Free = end, end
	return ""
}

// accessDenied returns a text that names the owner and mode of a path and the user who may not use it.
func accessDenied(path, what string, stat unix.Stat_t) string {
	groups, _ := os.Getgroups()
	return fmt.Sprintf("%s may not be %s by the user %d, whose groups are %v: "+
		"it is the user's %d and the group's %d, with the mode %#o",
		path, what, os.Getuid(), groups, stat.Uid, stat.Gid, stat.Mode&0o7777)
}
