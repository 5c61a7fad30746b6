package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
)

// A Sampler samples all CPUs that are not idle between Begin and End.
type Sampler struct {
	table   *symbols
	mu      sync.Mutex       // guards what follows: an aborted run closes a sampler that still samples
	rings   []*ring          // empty after Close
	known   map[uint64]Layer // by address; "" if the function has no layer
	others  map[uint32]bool  // by process ID: whether it is a program other than an agent
	counts  map[Layer]uint64
	lost    uint64
	ended   chan struct{}
	drained sync.WaitGroup
}

// Frequency is how often a busy CPU is sampled, in Hz. It does not divide the kernel's timer frequencies, so that
// samples do not synchronise with work that timers start.
const Frequency = 499

// The size of a ring in pages, a power of two, and how often it is drained. A ring holds the samples of four seconds.
const (
	ringPages  = 128
	drainEvery = 500 * time.Millisecond
)

// Open prepares to sample all CPUs of the machine. The error says what is not permitted or missing: sampling needs
// CAP_PERFMON in the machine's own user namespace, and the addresses of the kernel's functions.
func Open() (*Sampler, error) {
	table, err := kernelSymbols()
	if err != nil {
		return nil, err
	}
	s := &Sampler{table: table, known: map[uint64]Layer{}, others: map[uint32]bool{}, counts: map[Layer]uint64{},
		ended: make(chan struct{})}
	cpus, err := onlineCPUs()
	if err != nil {
		return nil, err
	}
	for _, cpu := range cpus {
		r, err := openRing(cpu)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.rings = append(s.rings, r)
	}
	return s, nil
}

// kernelSymbols returns the kernel's functions. They are read once, because it takes a tenth of a second.
var kernelSymbols = sync.OnceValues(func() (*symbols, error) {
	file, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, fmt.Errorf("find the kernel's functions: %w", err)
	}
	defer file.Close()
	return parseSymbols(file)
})

// Begin starts sampling.
func (s *Sampler) Begin() error {
	if err := s.ioctl(unix.PERF_EVENT_IOC_ENABLE); err != nil {
		return err
	}
	s.drained.Go(func() {
		tick := time.NewTicker(drainEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.drain()
			case <-s.ended:
				return
			}
		}
	})
	return nil
}

// End stops sampling. It is called once, after Begin.
func (s *Sampler) End() error {
	err := s.ioctl(unix.PERF_EVENT_IOC_DISABLE)
	close(s.ended)
	return err
}

// Seconds returns the CPU time of all CPUs between Begin and End by layer, in seconds, without layers that had no
// sample. It returns nil if samples were lost, because their layers are not known.
func (s *Sampler) Seconds() map[Layer]float64 {
	s.drained.Wait()
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost > 0 {
		return nil
	}
	layers := map[Layer]float64{}
	for layer, n := range s.counts {
		layers[layer] = float64(n) / Frequency
	}
	return layers
}

// Close releases the rings. It may be called at any time.
func (s *Sampler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings {
		r.close()
	}
	s.rings = nil
}

// ioctl sends a request to the events of all CPUs.
func (s *Sampler) ioctl(request uint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings {
		if err := unix.IoctlSetInt(r.fd, request, 0); err != nil {
			return fmt.Errorf("sample CPU %d: %w", r.cpu, err)
		}
	}
	return nil
}

// drain counts the samples in all rings and empties them.
func (s *Sampler) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings {
		r.read(func(kind uint32, body []byte) {
			switch kind {
			case unix.PERF_RECORD_SAMPLE:
				s.counts[s.sampleLayer(body)]++
			case unix.PERF_RECORD_LOST:
				if len(body) >= 16 { // an ID and the number of lost records
					s.lost += binary.NativeEndian.Uint64(body[8:])
				}
			}
		})
	}
}

// sampleLayer returns the layer of a sample: a process ID, a thread ID, a number of addresses and the addresses,
// innermost first. Markers among the addresses give the context of those that follow; a chain without kernel addresses
// is user space.
func (s *Sampler) sampleLayer(body []byte) Layer {
	if len(body) < 16 {
		return Other
	}
	process, n := binary.NativeEndian.Uint32(body), binary.NativeEndian.Uint64(body[8:])
	body = body[16:]
	if s.isOtherProgram(process) && !s.inSoftIRQ(body) {
		return Programs
	}
	inKernel := false
	for i := uint64(0); i < n && len(body) >= 8; i++ {
		address := binary.NativeEndian.Uint64(body)
		body = body[8:]
		if address >= contextMarkers {
			inKernel = inKernel || address == contextKernel
			continue
		}
		if layer := s.layerAt(address); layer != "" {
			return layer
		}
	}
	if !inKernel {
		return User
	}
	return Other
}

// inSoftIRQ reports whether a call chain is in a soft interrupt, which may run in the context of any process.
func (s *Sampler) inSoftIRQ(addresses []byte) bool {
	for ; len(addresses) >= 8; addresses = addresses[8:] {
		address := binary.NativeEndian.Uint64(addresses)
		if address < contextMarkers && softIRQs[baseName(s.table.name(address))] {
			return true
		}
	}
	return false
}

// isOtherProgram reports whether a process is a program other than an agent. Agents have the same name as this process.
// Kernel threads and samples without a process have no command line, and do not count as programs.
func (s *Sampler) isOtherProgram(process uint32) bool {
	other, known := s.others[process]
	if !known {
		other = process != 0 && !isAgent(process)
		s.others[process] = other
	}
	return other
}

// isAgent reports whether a process has this process's name or no command line. It is false for a process that has
// ended, since agents run longer than the sampler.
func isAgent(process uint32) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", process))
	own, ownErr := os.ReadFile("/proc/self/comm")
	if err != nil || ownErr != nil {
		return false
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	return bytes.Equal(name, own) || err == nil && len(command) == 0
}

// layerAt returns the layer of the function at an address.
func (s *Sampler) layerAt(address uint64) Layer {
	layer, known := s.known[address]
	if !known {
		layer = layerOf(baseName(s.table.name(address)))
		s.known[address] = layer
	}
	return layer
}

// Addresses from contextMarkers on are markers: PERF_CONTEXT_MAX and PERF_CONTEXT_KERNEL of linux/perf_event.h.
const (
	contextMarkers = ^uint64(4095) + 1
	contextKernel  = ^uint64(128) + 1
)

// onlineCPUs returns the numbers of the CPUs that can be sampled.
func onlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("find the CPUs: %w", err)
	}
	return machine.ParseCPUs(string(text))
}

// A ring is the memory in which the kernel puts the samples of one CPU.
type ring struct {
	fd, cpu int
	memory  []byte // a page of metadata, then the data
	scratch []byte // holds a record that wraps around
}

func openRing(cpu int) (*ring, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: Frequency, Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_CALLCHAIN,
		Bits: unix.PerfBitDisabled | unix.PerfBitFreq | unix.PerfBitExcludeIdle | unix.PerfBitExcludeCallchainUser,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sample CPU %d: %w", cpu, err)
	}
	memory, err := unix.Mmap(fd, 0, (1+ringPages)*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sample CPU %d: %w", cpu, err), unix.Close(fd))
	}
	return &ring{fd: fd, cpu: cpu, memory: memory}, nil
}

func (r *ring) close() {
	_ = unix.Munmap(r.memory)
	_ = unix.Close(r.fd)
}

// read removes all records from the ring. body is valid only during the call of record.
func (r *ring) read(record func(kind uint32, body []byte)) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.memory[0]))
	data := r.memory[os.Getpagesize():]
	head := atomic.LoadUint64(&page.Data_head)
	tail := page.Data_tail
	for head-tail >= headerSize {
		header := r.slice(data, tail, headerSize)
		kind, size := binary.NativeEndian.Uint32(header), uint64(binary.NativeEndian.Uint16(header[6:]))
		if size < headerSize || size > head-tail {
			break
		}
		record(kind, r.slice(data, tail+headerSize, size-headerSize))
		tail += size
	}
	atomic.StoreUint64(&page.Data_tail, head)
}

// headerSize is the size in bytes of struct perf_event_header: type, misc, size.
const headerSize = 8

// slice returns a range of the ring's data, which may wrap around to the beginning.
func (r *ring) slice(data []byte, from, size uint64) []byte {
	from %= uint64(len(data))
	if from+size <= uint64(len(data)) {
		return data[from : from+size]
	}
	r.scratch = append(append(r.scratch[:0], data[from:]...), data[:from+size-uint64(len(data))]...)
	return r.scratch
}
