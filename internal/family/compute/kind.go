package compute

import "github.com/knotmeter/knotmeter/internal/metric"

// A Kind is what a workload computes, or asks the machine for.
type Kind string

// The kinds. Those at the end are methods of other programs, which only these programs carry out.
const (
	AES256GCM       Kind = "aes-256-gcm"
	SHA256          Kind = "sha-256"
	ECDSAP256Sign   Kind = "ecdsa-p256-sign"
	ECDSAP256Verify Kind = "ecdsa-p256-verify"
	Deflate         Kind = "deflate"
	Sort            Kind = "sort"
	Matrix          Kind = "matrix"
	JSON            Kind = "json"

	MemoryCopy    Kind = "memory-copy"
	MemoryTriad   Kind = "memory-triad"
	MemoryLatency Kind = "memory-latency"
	MemoryWalk    Kind = "memory-walk"
	PageFault     Kind = "page-fault"

	Syscall        Kind = "syscall"
	ContextSwitch  Kind = "context-switch"
	FutexWake      Kind = "futex-wake"
	Timer          Kind = "timer"
	ProcessStart   Kind = "process-start"
	FileOpen       Kind = "file-open"
	CompareAndSwap Kind = "compare-and-swap"

	SysbenchCPU    Kind = "sysbench-cpu"
	SysbenchMemory Kind = "sysbench-memory"
	StressNGMatrix Kind = "stress-ng-matrix"
	StressNGVM     Kind = "stress-ng-vm"
)

// A kind holds the properties of a [Kind].
type kind struct {
	name    Kind
	subject string // name for readers
	metric  string // that verdicts are about
	counts  string // what the metric counts
	about   string // what it stresses, one sentence without full stop
	not     string // what it does not measure, likewise
	group   string // reports show its cases side by side; empty: it has no group
	// byOthers is set if only programs of others carry it out, because it is defined by one of them.
	byOthers  bool
	cpus      CPUs // default; empty: OneCPU
	fixedCPUs bool // it has no other number of CPUs
	pages     bool // the size of pages must be given
	// set is the default size of the working set, bytes; 0: it must be given. smallest and largest are its limits; 0:
	// there is no working set.
	set, smallest, largest int
}

// Sizes of working sets.
const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	smallPage = 4 * kib
	hugePage  = 2 * mib
)

// kinds holds the properties of all kinds, in the order of the documentation.
var kinds = []kind{
	{name: AES256GCM, subject: "AES-256-GCM", metric: metric.Bandwidth,
		counts: "bytes encrypted, in messages of 16 KiB",
		about:  "the instructions for AES and carry-less multiplication, as TLS and disk encryption use them",
		not:    "the kernel's own implementation, nor small messages, in which the set-up dominates"},
	{name: SHA256, subject: "SHA-256", metric: metric.Bandwidth,
		counts: "bytes hashed, in messages of 16 KiB",
		about:  "the instructions for SHA where the CPU has them, else integer arithmetic",
		not:    "the same thing on all CPUs: those without the instructions are several times slower"},
	{name: ECDSAP256Sign, subject: "ECDSA P-256, sign", metric: metric.Rate,
		counts: "signatures",
		about:  "multiplication of wide integers, as a server does in each TLS handshake",
		not:    "handshakes, which also exchange keys and wait for the network"},
	{name: ECDSAP256Verify, subject: "ECDSA P-256, verify", metric: metric.Rate,
		counts: "signatures verified",
		about:  "multiplication of wide integers, as a client does in each TLS handshake",
		not:    "verification of chains of certificates"},
	{name: Deflate, subject: "DEFLATE", metric: metric.Bandwidth,
		counts: "bytes of input, text that shrinks to about a third",
		about:  "integer arithmetic, unpredictable branches and tables that fit into the L2 cache",
		not:    "zlib: the implementation is that of Go's standard library at its default level"},
	{name: Sort, subject: "Sort", metric: metric.Rate,
		counts: "sorts of 4096 random 64-bit integers",
		about:  "unpredictable branches, on data that fit into the L1 cache",
		not:    "memory: the data never leave the caches"},
	{name: Matrix, subject: "Matrix product, floating-point", metric: metric.Rate,
		counts: "floating-point operations, 2n³ for a product of two n×n matrices of 64-bit numbers, n = 192",
		about:  "floating-point units and the L2 cache",
		not:    "the peak of the CPU, which takes its vector instructions; Go's compiler does not use them"},
	{name: JSON, subject: "JSON round trip", metric: metric.Rate,
		counts: "documents of about 2 KiB decoded and encoded again",
		about:  "branches, small copies and memory allocation, as controllers and API servers do",
		not:    "the fastest way to read JSON: it is Go's encoding/json, with its reflection"},

	{name: MemoryCopy, subject: "Memory copy", metric: metric.Bandwidth,
		set: 256 * mib, smallest: 64 * kib, largest: gib,
		counts: "bytes read and bytes written, 16 for each 64-bit number copied; what a cache reads before a write " +
			"is not counted",
		about: "bandwidth of memory under a loop of loads and stores",
		not:   "the peak of the memory controllers, which takes several CPUs: cpus=all"},
	{name: MemoryTriad, subject: "Memory triad", metric: metric.Bandwidth,
		set: 384 * mib, smallest: 96 * kib, largest: gib,
		counts: "bytes read and bytes written, 24 for each a[i] = b[i] + q·c[i] of 64-bit numbers; what the cache reads " +
			"before a write is not counted",
		about: "bandwidth of memory under a loop with little arithmetic",
		not:   "the peak of the memory controllers, which takes several CPUs: cpus=all"},
	{name: MemoryLatency, subject: "Memory latency", metric: metric.Mean,
		group: "Memory latency", smallest: smallPage, largest: gib,
		counts: "the time of one load, each of which takes the address of the next from memory",
		about: "the caches and the memory, by a chase of pointers in random order through a working set, in huge pages if " +
			"the kernel gives them",
		not: "bandwidth, nor with huge pages the cost of address translation: that is memory-walk"},
	{name: MemoryWalk, subject: "Memory walk", metric: metric.Mean, pages: true, group: "Memory walk",
		set: 256 * mib, smallest: 16 * mib, largest: gib,
		counts: "the time of one load, each of another page",
		about: "address translation: more pages than the TLB holds, so that each load walks page tables, nested ones in " +
			"virtual machines",
		not: "memory itself: the lines that are read fit into a cache"},
	{name: PageFault, subject: "Page faults", metric: metric.Rate,
		set: 64 * mib, smallest: mib, largest: gib,
		counts: "pages of 4 KiB touched for the first time",
		about:  "the kernel's page faults: finding, clearing and mapping a page",
		not:    "the host's work for memory that the machine has never used, which each page costs only once after boot"},

	{name: Syscall, subject: "System calls", metric: metric.Rate,
		counts: "calls of getppid",
		about: "the way into the kernel and back, with its mitigations of CPU vulnerabilities and filters of system " +
			"calls",
		not: "the work of calls that do more"},
	{name: ContextSwitch, subject: "Context switch", metric: metric.P50,
		counts: "the time from a write into a pipe to its read by another thread on the same CPU; a round trip has two",
		about:  "the scheduler and pipes",
		not:    "a switch between processes, which also changes the address space"},
	{name: FutexWake, subject: "Futex wake", metric: metric.P50, cpus: "2", fixedCPUs: true,
		counts: "the time from a wake to its effect on another CPU; a round trip has two",
		about:  "interrupts between CPUs (IPIs) and the way out of idle, which leave the guest in many virtual machines",
		not:    "locks without waiters, which need no system call"},
	{name: Timer, subject: "Timer lateness", metric: metric.P50,
		counts: "how much later than asked for a sleep of 100 µs ends (nanosleep, timer slack 1 ns)",
		about:  "timer interrupts and the way out of idle, which leave the guest in many virtual machines",
		not:    "the resolution of the clock"},
	{name: ProcessStart, subject: "Process start", metric: metric.P50,
		counts: "the time from the start of a program, which ends at once, until its end is known",
		about:  "fork, exec, page faults and exit",
		not:    "a shell or a dynamic linker: the program is Knotmeter's agent, a static Go program"},
	{name: FileOpen, subject: "File open", metric: metric.P50,
		counts: "the time to open and close a file",
		about:  "the kernel's cache of paths, security modules and eBPF programs that watch files",
		not:    "disks: the path is in the cache"},
	{name: CompareAndSwap, subject: "Contended compare-and-swap", metric: metric.Rate, cpus: "2",
		counts: "successful swaps of one word by all CPUs together",
		about:  "the way of a cache line between CPUs, as locks and counters of many threads cause it",
		not:    "locks, which give up the CPU after a while"},

	{name: SysbenchCPU, byOthers: true, subject: "sysbench cpu", metric: metric.Rate,
		counts: "events as sysbench counts them, each a search for the primes up to 10 000",
		about:  "integer division", not: "anything with a unit: figures compare with those of the same version only"},
	{name: SysbenchMemory, byOthers: true, subject: "sysbench memory", metric: metric.Bandwidth,
		counts: "bytes written, as sysbench counts them",
		about:  "writes to a block of 1 KiB, the program's default",
		not:    "memory: the block stays in the L1 cache"},
	{name: StressNGMatrix, byOthers: true, subject: "stress-ng matrix", metric: metric.Rate,
		counts: "operations as stress-ng counts them (bogo ops)",
		about:  "floating-point units and caches",
		not:    "anything with a unit: figures compare with those of the same version only"},
	{name: StressNGVM, byOthers: true, subject: "stress-ng vm", metric: metric.Rate,
		counts: "operations as stress-ng counts them (bogo ops)",
		about:  "mmap, page faults and writes to memory",
		not:    "anything with a unit: figures compare with those of the same version only"},
}
