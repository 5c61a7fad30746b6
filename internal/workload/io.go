package workload

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// FIO is the kind of every workload of storage: a job of fio. Its IO says which.
const FIO Kind = "fio"

// Limits of an IO.
const (
	MaxDepth = 1024
	MaxJobs  = 64
	MaxBlock = 16 << 20
)

// An IO is a job of fio, by fio's own words. Every value of it is comparable.
type IO struct {
	ReadWrite string `json:"rw,omitempty"`        // fio's rw: read, write, randread, randwrite, rw or randrw
	Mix       int    `json:"mix,omitempty"`       // fio's rwmixread of a mixed job, in per cent
	Block     int    `json:"bs,omitempty"`        // bytes of one operation
	Depth     int    `json:"iodepth,omitempty"`   // operations under way at once
	Jobs      int    `json:"numjobs,omitempty"`   // processes at once
	Fdatasync bool   `json:"fdatasync,omitempty"` // after each write, as a database waits; engine sync then
	// A job of the user's own: its name, and its section and the [global] before it as the file had them.
	// The other fields are empty then.
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
}

// Reads and Writes say what the job does; of a job of the user's own neither is known.
func (o IO) Reads() bool  { return strings.Contains(o.ReadWrite, "read") || o.Mixed() }
func (o IO) Writes() bool { return strings.Contains(o.ReadWrite, "write") || o.Mixed() }

// Mixed says whether the job reads and writes at once.
func (o IO) Mixed() bool { return o.ReadWrite == "rw" || o.ReadWrite == "randrw" }

// Random says whether the job's places are in random order.
func (o IO) Random() bool { return strings.HasPrefix(o.ReadWrite, "rand") }

// metric is what a verdict on the job is about: what is written and synced is waited for; large
// blocks are for bandwidth, one small operation at a time for latency, and many for their rate.
func (o IO) metric() string {
	const large = 64 << 10
	switch {
	case o.Fdatasync:
		return metric.Sync + metric.P99
	case o.Name != "" || o.Block >= large:
		return metric.Throughput
	case o.Depth == 1 && o.Jobs == 1 && !o.Mixed():
		return metric.P50
	}
	return metric.Rate
}

// ioName is randread-4k-qd64, randrw70-4k-qd16-jobs4 or write-2300-qd1-fdatasync.

func ioName() *regexp.Regexp {
	return regexp.MustCompile(`^(read|write|randread|randwrite|(?:rand)?rw)(\d{0,3})-(\d+[km]?)-qd(\d+)(?:-jobs(\d+))?(-fdatasync)?$`)
}

// jobPrefix begins the name of a job of the user's own.
const jobPrefix = "job/"

// ParseIO reads the workload of a storage case, as String writes it; text is the definition of a job of
// the user's own, and empty otherwise. Every error Is ErrInvalid.
func ParseIO(name, text string) (Spec, error) {
	s := Spec{Kind: FIO}
	if job, own := strings.CutPrefix(name, jobPrefix); own {
		s.IO = IO{Name: job, Text: text}
		if err := s.IO.validateOwn(); err != nil {
			return Spec{}, err
		}
		return s.Resolved()
	}
	m := ioName().FindStringSubmatch(name)
	if m == nil {
		return Spec{}, fmt.Errorf("%w: %q is no job of storage, such as randread-4k-qd64, randrw70-4k-qd16-jobs4 or write-2300-qd1-fdatasync", ErrInvalid, name)
	}
	block, err := unit.ParseSize(strings.ToUpper(m[3]))
	if strings.HasSuffix(m[3], "k") || strings.HasSuffix(m[3], "m") {
		block, err = unit.ParseSize(strings.ToUpper(m[3]) + "iB") // fio's k and m are powers of two
	}
	if err != nil {
		return Spec{}, fmt.Errorf("%w: %q: %w", ErrInvalid, name, err)
	}
	number := func(text string) int { n, _ := strconv.Atoi(text); return n } // the pattern has digits alone; too many are out of range
	s.IO = IO{ReadWrite: m[1], Block: block, Depth: number(m[4]), Jobs: max(number(m[5]), 1), Fdatasync: m[6] != ""}
	if s.IO.Depth == 0 || m[5] == "0" {
		return Spec{}, fmt.Errorf("%w: %q: a queue depth and a number of jobs are at least 1", ErrInvalid, name)
	}
	if m[2] != "" || s.IO.Mixed() {
		if s.IO.Mix = number(m[2]); m[2] == "" {
			s.IO.Mix = 50 // fio's default
		}
		if !s.IO.Mixed() {
			return Spec{}, fmt.Errorf("%w: %q: only rw and randrw have a share of reads", ErrInvalid, name)
		}
	}
	return s.Resolved()
}

// String is the workload's part of a storage case's name.
func (o IO) String() string {
	if o.Name != "" {
		return jobPrefix + o.Name
	}
	name := o.ReadWrite
	if o.Mixed() {
		name += strconv.Itoa(o.Mix)
	}
	name += "-" + blockText(o.Block) + "-qd" + strconv.Itoa(o.Depth)
	if o.Jobs > 1 {
		name += "-jobs" + strconv.Itoa(o.Jobs)
	}
	if o.Fdatasync {
		name += "-fdatasync"
	}
	return name
}

// blockText is a size in fio's way. A MiB is 1m; 1024k, as some published jobs have it, is the same.
func blockText(n int) string {
	switch {
	case n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "m"
	case n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "k"
	}
	return strconv.Itoa(n)
}

func (o *IO) fill() {
	if o.Name == "" {
		o.Depth, o.Jobs = or(o.Depth, 1), or(o.Jobs, 1)
	}
}

func (o IO) validate() error {
	known := map[string]bool{"read": true, "write": true, "randread": true, "randwrite": true, "rw": true, "randrw": true}
	switch {
	case o.Name != "":
		return o.validateOwn()
	case !known[o.ReadWrite]:
		return fmt.Errorf("%w: rw=%s is not one of read, write, randread, randwrite, rw and randrw", ErrInvalid, o.ReadWrite)
	case o.Block < 512 || o.Block > MaxBlock:
		return fmt.Errorf("%w: a block of %d bytes is not from 512 to %d", ErrInvalid, o.Block, MaxBlock)
	case o.Depth < 1 || o.Depth > MaxDepth:
		return fmt.Errorf("%w: a queue depth of %d is not from 1 to %d", ErrInvalid, o.Depth, MaxDepth)
	case o.Jobs < 1 || o.Jobs > MaxJobs:
		return fmt.Errorf("%w: %d jobs are not from 1 to %d", ErrInvalid, o.Jobs, MaxJobs)
	case o.Mix < 0 || o.Mix > 100:
		return fmt.Errorf("%w: a share of reads of %d %% is not from 0 to 100", ErrInvalid, o.Mix)
	case o.Fdatasync && (!o.Writes() || o.Depth != 1):
		return fmt.Errorf("%w: fdatasync is for writes, one at a time", ErrInvalid)
	}
	return nil
}

// validateOwn checks a job of the user's own by its name; what its text asks for fio knows.
func (o IO) validateOwn() error {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`).MatchString(o.Name) {
		return fmt.Errorf("%w: a job's name is letters, digits, dots, dashes and underscores, not %q", ErrInvalid, o.Name)
	}
	if o.Text == "" {
		return fmt.Errorf("%w: nothing says what the job %s does; its file is named by the suite, as in --suite storage:FILE", ErrInvalid, o.Name)
	}
	return nil
}
