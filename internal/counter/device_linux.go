package counter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
)

// addDriverStatistics adds the statistics in [driverCounters] of the machine's physical network cards. Virtual devices
// have none of them, and there may be hundreds of virtual devices.
func addDriverStatistics(counted map[string]float64) error {
	cards, err := filepath.Glob("/sys/class/net/*/device")
	if err != nil || len(cards) == 0 {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("ask for the statistics of devices: %w", err)
	}
	defer unix.Close(fd)
	for _, card := range cards {
		values, err := driverStatistics(fd, filepath.Base(filepath.Dir(card)))
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrPermission) {
			continue // the device is in another namespace or has no statistics
		}
		if err != nil {
			return fmt.Errorf("ask for the statistics of %s: %w", card, err)
		}
		for name, n := range values {
			if counter := driverCounters[name]; counter != "" {
				counted[counter] += float64(n)
			}
		}
	}
	return nil
}

const (
	mostStatistics = 4096 // limit of those read of one device
	nameLength     = 32   // bytes: ETH_GSTRING_LEN of <linux/ethtool.h>
	statisticsSet  = 1    // ETH_SS_STATS
)

// driverStatistics returns the statistics of a device by the driver's own names. It reads their number, then their
// names, then their values.
func driverStatistics(fd int, device string) (map[string]uint64, error) {
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, device)
	if err != nil {
		return nil, err
	}
	n := min(int(info.N_stats), mostStatistics)
	if n == 0 {
		return nil, nil
	}
	names := make([]byte, 12+n*nameLength)
	header := (*struct{ cmd, set, n uint32 })(unsafe.Pointer(&names[0]))
	header.cmd, header.set, header.n = unix.ETHTOOL_GSTRINGS, statisticsSet, uint32(n)
	if err := machine.Ethtool(fd, device, unsafe.Pointer(&names[0])); err != nil {
		return nil, err
	}
	values := make([]uint64, 1+n)
	*(*[2]uint32)(unsafe.Pointer(&values[0])) = [2]uint32{unix.ETHTOOL_GSTATS, uint32(n)}
	if err := machine.Ethtool(fd, device, unsafe.Pointer(&values[0])); err != nil {
		return nil, err
	}
	all := map[string]uint64{}
	for i := range n {
		all[unix.ByteSliceToString(names[12+i*nameLength:][:nameLength])] = values[1+i]
	}
	return all, nil
}
