//go:build !linux

package machine

import (
	"errors"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Volume returns unknown facts: the disk of a directory is only read on Linux.
func Volume(string) []result.Fact {
	return []result.Fact{{Name: "filesystem", Value: result.Unknown},
		{Name: "backing", Value: result.Unknown}, {Name: "device", Value: result.Unknown}}
}

// FileSystem returns nothing: file systems are only told apart on Linux.
func FileSystem(string) string { return "" }

// Shared returns true, since it is not known on this system whether other machines use a file system.
func Shared(string) bool { return true }

// Facts returns the kernel as unknown: the facts of the machine are only read on Linux.
func Facts() []result.Fact { return unknown }

// Throttled returns 0: this system has no control groups.
func Throttled() int64 { return 0 }

// Uptime returns a time that continues while the machine sleeps: on this system the time of day, which can be set.
func Uptime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// Asleep returns 0: the time is only known on Linux.
func Asleep() time.Duration { return 0 }

// PlaceFacts returns no facts: agents in pods run on Linux.
func PlaceFacts() []result.Fact { return nil }

// InspectDevice returns a device of which only the name is known.
func InspectDevice(device string) Device { return unknownDevice(device) }

// Sockets returns an error: the sockets of a network namespace are only read on Linux.
func Sockets() ([]Socket, error) {
	return nil, errors.New("only Linux lists the sockets of a network namespace")
}

// A Capture captures nothing: frames are only captured on Linux.
type Capture struct{}

// StartCapture returns an error: frames are only captured on Linux.
func StartCapture(bool) (*Capture, error) { return nil, errors.New("only Linux captures packets") }

// Frames returns nothing.
func (*Capture) Frames() ([][]byte, error) { return nil, nil }

// Close does nothing.
func (*Capture) Close() {}

// InspectVolume returns a volume that cannot be measured.
func InspectVolume(path string) *VolumeState {
	return &VolumeState{Facts: Volume(path), Error: "only Linux tells what a volume has"}
}

var unknown = []result.Fact{{Name: "kernel", Value: result.Unknown}}
