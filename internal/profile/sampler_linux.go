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
)

// A Sampler takes samples of all CPUs that are not idle between Begin and End.
type Sampler struct {
	table   *symbols
	mu      sync.Mutex       // guards what follows: a run that is given up closes a sampler that still samples
	rings   []*ring          // none once it is closed
	known   map[uint64]Layer // of addresses that were seen; empty if a function has none
	others  map[uint32]bool  // processes that were seen: whether they are programs that no agent runs
	counts  map[Layer]uint64
	lost    uint64
	ended   chan struct{}
	drained sync.WaitGroup
}

// Frequency is how often a busy CPU is sampled, in Hz. It is no divisor of the kernel's timer frequencies, so that
// samples do not go in step with what timers start.
const Frequency = 499

// The size of a ring in pages, a power of two, and how often it is emptied: a ring holds the samples of four seconds.
const (
	ringPages  = 128
	drainEvery = 500 * time.Millisecond
)

// Open prepares to sample all CPUs of the machine. The error says what is not permitted or not there: it takes
// CAP_PERFMON in the machine's own user namespace, and the addresses of the kernel's functions.
func Open() (*Sampler, error) {
	table, err := kernel()
	if err != nil {
		return nil, err
	}
	s := &Sampler{table: table, known: map[uint64]Layer{}, others: map[uint32]bool{}, counts: map[Layer]uint64{},
		ended: make(chan struct{})}
	cpus, err := online()
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

// kernel are the kernel's functions, which are read once: it takes a tenth of a second.
var kernel = sync.OnceValues(func() (*symbols, error) {
	file, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, fmt.Errorf("find the kernel's functions: %w", err)
	}
	defer file.Close()
	return parseSymbols(file)
})

// Begin starts to sample.
func (s *Sampler) Begin() error {
	if err := s.order(unix.PERF_EVENT_IOC_ENABLE); err != nil {
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

// End stops. It is called once, after Begin.
func (s *Sampler) End() error {
	err := s.order(unix.PERF_EVENT_IOC_DISABLE)
	close(s.ended)
	return err
}

// Seconds is the CPU time of all CPUs by layer between Begin and End, without those that had no sample; nil if samples
// were lost, since it is not known of which layer they were.
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

// Close releases what Open took. It may be called at any time.
func (s *Sampler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings {
		r.close()
	}
	s.rings = nil
}

func (s *Sampler) order(request uint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings {
		if err := unix.IoctlSetInt(r.fd, request, 0); err != nil {
			return fmt.Errorf("sample CPU %d: %w", r.cpu, err)
		}
	}
	return nil
}

func (s *Sampler) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rings {
		r.read(func(kind uint32, body []byte) {
			switch kind {
			case unix.PERF_RECORD_SAMPLE:
				s.counts[s.layer(body)]++
			case unix.PERF_RECORD_LOST:
				if len(body) >= 16 { // an ID and a number
					s.lost += binary.NativeEndian.Uint64(body[8:])
				}
			}
		})
	}
}

// layer is that of a sample, which is a process and a thread, a number of addresses and these, the innermost first.
// Addresses that are markers say whose the following ones are; a chain without any of the kernel's is of user space.
func (s *Sampler) layer(body []byte) Layer {
	if len(body) < 16 {
		return Other
	}
	process, n := binary.NativeEndian.Uint32(body), binary.NativeEndian.Uint64(body[8:])
	body = body[16:]
	if s.isOther(process) && !s.interrupted(body) {
		return Programs
	}
	inKernel := false
	for i := uint64(0); i < n && len(body) >= 8; i++ {
		address := binary.NativeEndian.Uint64(body)
		body = body[8:]
		if address >= marker {
			inKernel = inKernel || address == contextKernel
			continue
		}
		if layer := s.of(address); layer != "" {
			return layer
		}
	}
	if !inKernel {
		return User
	}
	return Other
}

// interrupted says whether a soft interrupt runs, on whosever time.
func (s *Sampler) interrupted(addresses []byte) bool {
	for ; len(addresses) >= 8; addresses = addresses[8:] {
		if address := binary.NativeEndian.Uint64(addresses); address < marker && softIRQs[bare(s.table.name(address))] {
			return true
		}
	}
	return false
}

// isOther says whether a process is a program that no agent runs. Agents have the name of this one; threads of the
// kernel and what has no number here, such as a CPU without a process, have no command line.
func (s *Sampler) isOther(process uint32) bool {
	other, known := s.others[process]
	if !known {
		other = process != 0 && !isAgent(process)
		s.others[process] = other
	}
	return other
}

// isAgent is false of what has ended meanwhile, as agents do not.
func isAgent(process uint32) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", process))
	own, cannot := os.ReadFile("/proc/self/comm")
	if err != nil || cannot != nil {
		return false
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	return bytes.Equal(name, own) || err == nil && len(command) == 0
}

// of is the layer of the function that an address is in.
func (s *Sampler) of(address uint64) Layer {
	layer, known := s.known[address]
	if !known {
		layer = layerOf(bare(s.table.name(address)))
		s.known[address] = layer
	}
	return layer
}

// Markers in a chain, see PERF_CONTEXT_MAX in the kernel's linux/perf_event.h.
const (
	marker        = ^uint64(4095) + 1
	contextKernel = ^uint64(128) + 1
)

// online are the CPUs that can be sampled.
func online() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("find the CPUs: %w", err)
	}
	return parseCPUs(string(text))
}

// A ring is where the kernel puts the samples of a CPU.
type ring struct {
	fd, cpu int
	memory  []byte
	scratch []byte
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

// read takes all records out of the ring. The body is valid within the call.
func (r *ring) read(record func(kind uint32, body []byte)) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.memory[0]))
	data := r.memory[os.Getpagesize():]
	head := atomic.LoadUint64(&page.Data_head)
	tail := page.Data_tail
	for head-tail >= headerSize {
		header := r.at(data, tail, headerSize)
		kind, size := binary.NativeEndian.Uint32(header), uint64(binary.NativeEndian.Uint16(header[6:]))
		if size < headerSize || size > head-tail {
			break
		}
		record(kind, r.at(data, tail+headerSize, size-headerSize))
		tail += size
	}
	atomic.StoreUint64(&page.Data_tail, head)
}

// headerSize is that of struct perf_event_header: type, misc, size.
const headerSize = 8

// at is a part of the ring, which may go on at its beginning.
func (r *ring) at(data []byte, from, size uint64) []byte {
	from %= uint64(len(data))
	if from+size <= uint64(len(data)) {
		return data[from : from+size]
	}
	r.scratch = append(append(r.scratch[:0], data[from:]...), data[:from+size-uint64(len(data))]...)
	return r.scratch
}
