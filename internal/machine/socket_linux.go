package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Sockets returns the TCP sockets of the network namespace that the process is in. Any user may read them.
func Sockets() ([]Socket, error) {
	var list []Socket
	for _, name := range []string{"tcp", "tcp6"} {
		found, err := readSockets("/proc/thread-self/net/" + name)
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			continue // the kernel has no IPv6
		}
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

func readSockets(path string) ([]Socket, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the sockets of the network namespace: %w", err)
	}
	defer file.Close()
	list, err := ParseSockets(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}
