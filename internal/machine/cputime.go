package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A CPUMode is a state of a CPU, in the order of /proc/stat.
type CPUMode int

// The modes. Guest time is part of user time already.
const (
	User CPUMode = iota
	Nice
	System
	Idle
	IOWait
	IRQ
	SoftIRQ
	Steal
	cpuModes // number of modes
)

// ticksPerSecond is USER_HZ, the unit of /proc/stat: 100 on every architecture that Linux supports today.
const ticksPerSecond = 100.0

// CPUTimes holds CPU seconds by mode.
type CPUTimes [cpuModes]float64

// Busy returns the time that was neither idle nor waiting for I/O. Stolen time counts, since it was not available.
func (t CPUTimes) Busy() float64 {
	return t[User] + t[Nice] + t[System] + t[IRQ] + t[SoftIRQ] + t[Steal]
}

// Sum returns the time in all modes.
func (t CPUTimes) Sum() (sum float64) {
	for _, v := range t {
		sum += v
	}
	return sum
}

// Share returns the share of the time in all modes that was in one; 0 if there is no time.
func (t CPUTimes) Share(mode CPUMode) float64 {
	if all := t.Sum(); all > 0 {
		return t[mode] / all
	}
	return 0
}

// Since returns the time since an earlier reading.
func (t CPUTimes) Since(earlier CPUTimes) CPUTimes {
	for i := range t {
		t[i] = max(t[i]-earlier[i], 0)
	}
	return t
}

// CPUStat holds each CPU's times since boot, by the CPU's number.
type CPUStat map[int]CPUTimes

// errCPUStat is wrapped by every error about the text of /proc/stat.
var errCPUStat = errors.New("not the text of /proc/stat")

// ParseCPUStat reads the lines of /proc/stat about single CPUs.
func ParseCPUStat(r io.Reader) (CPUStat, error) {
	stat := CPUStat{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || len(fields[0]) < 4 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		cpu, err := strconv.ParseUint(fields[0][3:], 10, 16)
		if err != nil || len(fields) < int(cpuModes)+1 {
			return nil, fmt.Errorf("%w: line %q", errCPUStat, lines.Text())
		}
		var t CPUTimes
		for i := range t {
			n, err := strconv.ParseUint(fields[i+1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%w: line %q", errCPUStat, lines.Text())
			}
			t[i] = float64(n) / ticksPerSecond
		}
		stat[int(cpu)] = t
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errCPUStat, err)
	}
	if len(stat) == 0 {
		return nil, fmt.Errorf("%w: no line about a CPU", errCPUStat)
	}
	return stat, nil
}

// ReadCPUStat returns the times of all CPUs now.
func ReadCPUStat() (CPUStat, error) {
	file, err := os.Open("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("read the CPU's times: %w", err)
	}
	defer file.Close()
	return ParseCPUStat(file)
}
