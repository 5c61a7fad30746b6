package computeload

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/unit"
)

const (
	hugePage = 2 << 20  // bytes
	lineSize = 64       // bytes of a cache line
	chunk    = 64 << 10 // bytes of each array in one operation of a copy or a triad

	// hugeEnough is the share of a working set that has to be in huge pages where they are asked for: all but what is at
	// the ends.
	hugeEnough = 0.95
)

// A region is memory outside of Go's heap. It begins at a multiple of a huge page.
type region struct {
	mapped []byte
	bytes  []byte
}

// mapRegion maps memory, which is not touched. pages is that of a [Config].
func mapRegion(size int, pages string) (*region, error) {
	const private = unix.MAP_ANON | unix.MAP_PRIVATE
	mapped, err := unix.Mmap(-1, 0, size+hugePage, unix.PROT_READ|unix.PROT_WRITE, private)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	from := -int(uintptr(unsafe.Pointer(&mapped[0]))) & (hugePage - 1)
	r := &region{mapped, mapped[from : from+size : from+size]}
	advice := unix.MADV_HUGEPAGE
	if pages == SmallPages {
		advice = unix.MADV_NOHUGEPAGE
		if os.Getpagesize() != smallPage {
			r.close()
			return nil, unsupported(fmt.Sprintf("the pages of this machine have %d bytes", os.Getpagesize()))
		}
	}
	// A kernel without huge pages refuses both pieces of advice.
	if err := unix.Madvise(mapped, advice); err != nil && pages == HugePages {
		r.close()
		return nil, unsupported(fmt.Sprintf("the kernel gives no transparent huge pages: %v", err))
	}
	return r, nil
}

// settle sets the share of huge pages, after all pages were touched, and returns an error if they are not what the
// place asks for.
func (r *region) settle(p place) error {
	share, err := r.hugeShare()
	if err == nil {
		p.huge(share)
	}
	switch {
	case p.pages == HugePages && err != nil:
		return unsupported(fmt.Sprintf("it is not known whether the memory is in huge pages: %v", err))
	case p.pages == HugePages && share < hugeEnough:
		return unsupported(fmt.Sprintf("the kernel gave huge pages for %.0f %% of the memory only (its "+
			"transparent_hugepage/enabled is %q); memory may be too fragmented", share*100, hugeSetting()))
	case p.pages == SmallPages && err == nil && share > 0:
		return fmt.Errorf("%.0f %% of the memory is in huge pages, which the kernel was told not to use", share*100)
	}
	return nil
}

// hugeSetting returns when the kernel gives huge pages: always, madvise or never.
func hugeSetting() string {
	text, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	_, chosen, _ := strings.Cut(string(text), "[")
	chosen, _, _ = strings.Cut(chosen, "]")
	return chosen
}

// hugeShare returns the share of the region that is in huge pages.
func (r *region) hugeShare() (float64, error) {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	begin := uint64(uintptr(unsafe.Pointer(&r.bytes[0])))
	huge, err := hugeBytes(bufio.NewScanner(file), begin, begin+uint64(len(r.bytes)))
	return float64(huge) / float64(len(r.bytes)), err
}

// hugeBytes returns how many bytes are in huge pages in the mappings of a text of smaps that overlap a range.
func hugeBytes(smaps *bufio.Scanner, begin, end uint64) (uint64, error) {
	var sum uint64
	found, inside := false, false
	for smaps.Scan() {
		line := smaps.Text()
		if from, to, is := mappingOf(line); is {
			inside = from < end && begin < to
			found = found || inside
			continue
		}
		rest, is := strings.CutPrefix(line, "AnonHugePages:")
		if !is || !inside {
			continue
		}
		kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 44)
		if err != nil {
			return 0, fmt.Errorf("smaps: %q: %w", line, err)
		}
		sum += kib << 10
	}
	if !found && smaps.Err() == nil {
		return 0, errors.New("smaps has no such mapping")
	}
	return min(sum, end-begin), smaps.Err()
}

// mappingOf returns the addresses of a line of smaps that begins a mapping: "7f00-8000 rw-p …".
func mappingOf(line string) (from, to uint64, is bool) {
	addresses, _, _ := strings.Cut(line, " ")
	first, last, is := strings.Cut(addresses, "-")
	if !is {
		return 0, 0, false
	}
	from, err := strconv.ParseUint(first, 16, 64)
	to, toErr := strconv.ParseUint(last, 16, 64)
	return from, to, err == nil && toErr == nil
}

func (r *region) close() { _ = unix.Munmap(r.mapped) } // fails only for memory that is not mapped

// An arrayLoop copies one array to another, or adds a multiple of a third one, in chunks.
type arrayLoop struct {
	region  *region
	a, b, c []float64 // c is empty for a copy
	next    int       // index of the next chunk
	wrong   bool
}

// factor is that of the triad a = b + factor × c. All numbers are whole, so that results are exact.
const factor = 3.0

func startCopy(p place) (loop, error) { return newArrays(p, 2) }

func startTriad(p place) (loop, error) { return newArrays(p, 3) }

// newArrays divides the working set into arrays of whole chunks.
func newArrays(p place, arrays int) (loop, error) {
	r, err := mapRegion(p.set, p.pages)
	if err != nil {
		return nil, err
	}
	each := p.set / arrays / chunk * chunk
	all := unsafe.Slice((*float64)(unsafe.Pointer(&r.bytes[0])), len(r.bytes)/8)
	n := each / 8
	l := &arrayLoop{region: r, a: all[:n], b: all[n : 2*n]}
	if arrays == 3 {
		l.c = all[2*n : 3*n]
	}
	// One array after another, so that each is in a row of pages.
	for i := range l.a {
		l.a[i] = -1
	}
	for i := range l.b {
		l.b[i] = float64(i)
	}
	for i := range l.c {
		l.c[i] = float64(2 * i)
	}
	if err := r.settle(p); err != nil {
		r.close()
		return nil, err
	}
	return l, nil
}

func (l *arrayLoop) run(n int, _ *netload.Histogram) {
	const numbers = chunk / 8
	for range n {
		from, to := l.next, l.next+numbers
		if len(l.c) > 0 {
			triad(l.a[from:to], l.b[from:to], l.c[from:to])
		} else {
			copyArray(l.a[from:to], l.b[from:to])
		}
		l.wrong = l.wrong || l.a[from] != l.want(from) || l.a[to-1] != l.want(to-1)
		if l.next = to; l.next == len(l.a) {
			l.next = 0
		}
	}
}

// want returns what the element i of the result has to be.
func (l *arrayLoop) want(i int) float64 {
	if len(l.c) > 0 {
		return float64(i) + factor*float64(2*i)
	}
	return float64(i)
}

// check compares all elements with what they have to be, or with what they were if no operation has reached them.
func (l *arrayLoop) check() error {
	for i, got := range l.a {
		if got != l.want(i) && got != -1 || l.wrong {
			return fmt.Errorf("element %d is %g and not %g", i, got, l.want(i))
		}
	}
	return nil
}

func (l *arrayLoop) close() { l.region.close() }

// A node is an element of a chain, alone on its cache line.
type node struct {
	next    *node
	ordinal uint64 // in the chain, from 0
	_       [lineSize - 16]byte
}

// A chaseLoop follows a chain of pointers through all lines of a working set, or through one line of each page, in
// random order.
type chaseLoop struct {
	region *region
	at     *node
	length uint64 // of the chain, which is a circle
	steps  uint64
	wrong  bool
}

func startLatency(p place) (loop, error) { return newChase(p, lineSize) }

func startWalk(p place) (loop, error) { return newChase(p, smallPage) }

// newChase makes a chain with one node in each part of a working set.
func newChase(p place, part int) (loop, error) {
	r, err := mapRegion(p.set, p.pages)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(r.bytes); i += smallPage {
		r.bytes[i] = 0 // in order, so that the kernel may use huge pages
	}
	random := rand.New(rand.NewPCG(p.seed, 5))
	order := make([]uint32, p.set/part)
	for i := range order {
		order[i] = uint32(i)
	}
	random.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	// In each page the node is on another line, since lines at the same place of all pages would share few sets of a
	// cache.
	lines := part / lineSize
	offset := func(i uint32) int { return int(i)*part + int(i*0x9e3779b1>>16)%lines*lineSize }
	at := func(i uint32) *node { return (*node)(unsafe.Pointer(&r.bytes[offset(i)])) }
	for k, i := range order {
		*at(i) = node{next: at(order[(k+1)%len(order)]), ordinal: uint64(k)}
	}
	if err := r.settle(p); err != nil {
		r.close()
		return nil, err
	}
	return &chaseLoop{region: r, at: at(order[0]), length: uint64(len(order))}, nil
}

// unrolled is the number of loads in one turn of the chase.
const unrolled = 16

func (l *chaseLoop) run(n int, _ *netload.Histogram) {
	p := l.at
	for range n / unrolled {
		p = p.next.next.next.next.next.next.next.next
		p = p.next.next.next.next.next.next.next.next
	}
	for range n % unrolled {
		p = p.next
	}
	l.at, l.steps = p, l.steps+uint64(n)
	l.wrong = l.wrong || p.ordinal != l.steps%l.length
}

func (l *chaseLoop) check() error {
	if l.wrong {
		return errors.New("the chain of pointers did not lead where it has to")
	}
	return nil
}

func (l *chaseLoop) close() { l.region.close() }

// A faultLoop touches pages for the first time. When it has touched all, it gives them back, which does not count.
type faultLoop struct {
	region  *region
	next    int // offset of the next page
	touched int64
	before  int64 // page faults of the thread when it began
	aside   *int64
	err     error
}

func startFaults(p place) (loop, error) {
	r, err := mapRegion(p.set, SmallPages)
	if err != nil {
		return nil, err
	}
	l := &faultLoop{region: r, aside: p.aside}
	l.before, err = threadFaults()
	return l, err
}

// threadFaults returns how many page faults without disk accesses the calling thread had.
func threadFaults() (int64, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0, fmt.Errorf("read the page faults of a thread: %w", err)
	}
	return u.Minflt, nil
}

func (l *faultLoop) run(n int, _ *netload.Histogram) {
	memory := l.region.bytes
	for range n {
		memory[l.next] = 1
		if l.next += smallPage; l.next == len(memory) {
			began := time.Now()
			if err := unix.Madvise(memory, unix.MADV_DONTNEED); err != nil && l.err == nil {
				l.err = fmt.Errorf("give pages back: %w", err)
			}
			l.next = 0
			*l.aside += since(began)
		}
	}
	l.touched += int64(n)
}

// check compares the kernel's number of page faults. It may be larger, for faults elsewhere.
func (l *faultLoop) check() error {
	now, err := threadFaults()
	if err = errors.Join(l.err, err); err == nil && now-l.before < l.touched {
		err = fmt.Errorf("%d pages were touched with %d page faults", l.touched, now-l.before)
	}
	return err
}

func (l *faultLoop) close() { l.region.close() }

// memoryReserve is the share of the available memory that the working sets leave free, so that the machine does not run
// out of it.
const memoryReserve = 0.1

// lackingMemory returns the reason why the memory does not suffice for the working sets of n threads; empty if it does.
func lackingMemory(c Config, n int) string {
	need := float64(c.Set) * float64(n)
	if free := machine.AvailableMemory(); free > 0 && need > free*(1-memoryReserve) {
		return fmt.Sprintf("%s of memory are available, and the working sets of %s take %s: give a smaller set=",
			unit.Format(free, unit.Byte), unit.Plural(n, "thread"), unit.Format(need, unit.Byte))
	}
	return ""
}
