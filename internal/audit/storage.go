package audit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Facts of runs and volumes that rules of storage use, in addition to those of fio's options (fio.direct …).
const (
	FactBacking    = "backing"           // of a volume: disk, memory, overlay, network
	FactRotational = "device-rotational" // yes or no
	FactDevice     = "device"            // sda, vda1 on vda
	FactKind       = "kind"              // of a target: local is a disk of the machine itself
	FactJobsAtOnce = "fio.jobs-at-once"  // number of jobs that ran at the same time
	FactTouched    = "fio.touched"       // device, if a job used a device itself
)

// Thresholds of the rules of storage.
const (
	burst       = 1.5   // ratio of the first seconds to the median of the second half
	burstSeries = 6     // minimum length of a run in seconds
	rotation    = 1e-3  // seconds; minimum of a rotating disk: half a revolution takes 2 ms at 15 000 rpm
	flashRead   = 5e-6  // seconds; no disk answers faster, because its interrupt alone takes longer
	sizeSeconds = 25    // minimum size of a file, in seconds of its bandwidth
	etcdFloor   = 10e-3 // seconds; limit of the 99th percentile of fdatasync that etcd documents
)

// volumeRules check measurements of volumes.
var volumeRules = []Rule{
	{Name: "burst", Severity: Warning, checkRun: bursts,
		About: "The first fifth of a storage run's seconds is not above 1.5 times the median of its second half, in runs " +
			"of six seconds and more.",
		Why: "A cache that fills up, or burst credit, is measured together with what follows; no run shows how long it " +
			"lasts.",
		More: "the credit buckets of AWS gp2 and of Azure's smaller disks"},
	{Name: "memory-volume", Severity: Warning, checkRun: inMemory,
		About: "The volume is not a file system in memory (tmpfs, ramfs).",
		Why:   "Memory was measured, not a disk; tmpfs takes direct I/O too since Linux 6.6."},
	{Name: "faster-than-disk", Severity: Warning, checkRun: fasterThanDisk,
		About: "The median of single random reads is above 5 µs, and above 1 ms on a disk that rotates.",
		Why:   "No such disk answers so fast: a cache did, or the places read had never been written."},
	{Name: "faster-than-local", Severity: Warning, checkAll: fasterThanLocal,
		About: "Single random reads of a volume take longer than those of a disk of the machine itself, where both were " +
			"measured.",
		Why:  "A volume behind a network cannot answer before a disk without one: a cache on the way did.",
		More: "the README of longhorn's kbench"},
}

// jobRules check jobs of fio that measure volumes.
var jobRules = []Rule{
	{Name: "page-cache", Severity: Warning, checkRun: pageCache,
		About: "Imported jobs of fio are direct (direct=1), or sync what they write.",
		Why:   "Otherwise the page cache answers, and its size relative to the file decides the result."},
	{Name: "depth-without-effect", Severity: Warning, checkRun: depthWithoutEffect,
		About: "A queue depth above one has an engine that allows several outstanding operations.",
		Why:   "fio's sync engines wait for each operation: a depth of one was measured under another name.",
		More:  "K-Bench's dp_fio has such jobs"},
	{Name: "jobs-at-once", Severity: Warning, checkRun: jobsAtOnce,
		About: "Jobs of fio that measure one volume run one after another (stonewall).",
		Why: "At the same time, each gets a part of the volume's capacity: others measured 734 IOPS this way, and 10 600 " +
			"with the job alone.",
		More: "kastenhq/kubestr issue 68"},
	{Name: "small-file", Severity: Note, checkRun: smallFile,
		About: "The file of an imported job is 25 s of the job's bandwidth or more.",
		Why:   "A smaller file fits into caches on the way to the disk, and is read from there the second time.",
		More:  "the README of longhorn's kbench"},
	{Name: "unwritten", Severity: Note, checkRun: unwritten,
		About: "The data that an imported job reads from a device was written before, as far as its file says.",
		Why:   "Reads of places that were never written need no disk: the volume's own records answer with zeros."},
	{Name: "no-latency", Severity: Note, checkRun: noLatency,
		About: "Imported jobs of fio measure latencies (no gtod_reduce=1).",
		Why:   "A rate without latencies can come from a queue in which every operation waits for a second.",
		More:  "kastenhq/kubestr issue 144"},
	{Name: "etcd-floor", Severity: Note, checkRun: checkSyncLatency,
		About: "The 99th percentile of fdatasync is below 10 ms.",
		Why: "etcd's documentation asks for less, because its leader changes under load otherwise; it is a floor, and says " +
			"nothing about faster volumes.",
		More: "etcd.io, FAQ: what does the warning 'failed to send out heartbeat on time' mean?"},
}

func bursts(r measuredRun) ([]Finding, int) {
	i := slices.IndexFunc(r.Series, func(s result.Series) bool { return s.Name == metric.Rate && s.Step > 0 })
	if !r.planned.Load.Volume || i < 0 || len(r.Series[i].Values) < burstSeries ||
		r.Series[i].Step*float64(len(r.Series[i].Values)) < burstSeries {
		return nil, 0
	}
	values := r.Series[i].Values
	head := values[:max(1, len(values)/5)]
	rest := stats.Median(values[len(values)/2:])
	first := stats.Median(head)
	if !(rest > 0) || first <= burst*rest {
		return nil, 1
	}
	return oneFinding(metric.Rate, "%s in the first %g s, %s in the second half.", unit.Format(first, r.Series[i].Unit),
		r.Series[i].Step*float64(len(head)), unit.Format(rest, r.Series[i].Unit)), 1
}

func inMemory(r measuredRun) ([]Finding, int) {
	backing := fact(FactBacking, r.Facts, r.targetFacts)
	if !r.planned.Load.Volume || backing == "" || backing == result.Unknown {
		return nil, 0
	}
	if backing != "memory" {
		return nil, 1
	}
	return oneFinding("", "The volume is a file system in memory (%s).", fact("filesystem", r.Facts, r.targetFacts)), 1
}

// fact returns the value of a fact, from the first list that has it.
func fact(name string, lists ...[]result.Fact) string {
	for _, facts := range lists {
		if v := result.FactOf(facts, name); v != "" {
			return v
		}
	}
	return ""
}

// singleReads returns the median of random reads one after another; ok is false for other jobs, and for the page cache.
func singleReads(of result.Case, r *result.Run) (median float64, ok bool) {
	if !of.Load.SingleReads || r.Fact("fio.direct") == "0" {
		return 0, false
	}
	median, ok = number(r, metric.P50)
	return median, ok && median > 0
}

func fasterThanDisk(r measuredRun) ([]Finding, int) {
	median, ok := singleReads(r.planned, r.Run)
	if !ok || fact(FactBacking, r.Facts, r.targetFacts) == "memory" {
		return nil, 0
	}
	switch {
	case median < flashRead:
		return oneFinding(metric.P50, "%s for a random read.", unit.Format(median, unit.Second)), 1
	case median < rotation && fact(FactRotational, r.Facts, r.targetFacts) == "yes" &&
		!virtual(fact(FactDevice, r.Facts, r.targetFacts)):
		return oneFinding(metric.P50, "%s for a random read, of a disk that is said to rotate.",
			unit.Format(median, unit.Second)), 1
	}
	return nil, 1
}

// virtual reports whether a disk is virtual: hypervisors report all of these, and loop devices on them, as rotational.
func virtual(device string) bool {
	return strings.HasPrefix(device, "vd") || strings.HasPrefix(device, "xvd") || strings.HasPrefix(device, "loop")
}

func fasterThanLocal(recs *records) (found []Finding, checked int) {
	for _, name := range recs.cases {
		local, where := math.Inf(1), ""
		others := map[string]float64{}
		for _, target := range recs.targets(name) {
			var medians []float64
			for _, r := range recs.byCase[name][target] {
				if m, ok := singleReads(recs.planned[name], r); ok {
					medians = append(medians, m)
				}
			}
			if len(medians) == 0 {
				continue
			}
			m := stats.Median(medians)
			kind := result.FactOf(recs.Facts[target], FactKind)
			switch {
			case kind == "local" && result.FactOf(recs.Facts[target], FactBacking) == "disk" && m < local:
				local, where = m, target
			case kind != "local" && kind != "":
				others[target] = m
			}
		}
		for _, target := range recs.targets(name) {
			m, is := others[target]
			if !is || where == "" {
				continue
			}
			checked++
			if m < local*(1-clearMargin) {
				found = append(found, Finding{Case: name, Target: target, Metric: metric.P50, Runs: ids(recs.byCase[name][target]),
					Saw: fmt.Sprintf("%s for a random read, where %s, a disk of the machine itself, takes %s.",
						unit.Format(m, unit.Second), where, unit.Format(local, unit.Second))})
			}
		}
	}
	return found, checked
}

// ofFio reports whether a run is of an imported job of fio whose options are known.
func ofFio(r measuredRun) bool {
	return r.Fact("import.file") != "" && (r.Fact("fio.ioengine") != "" ||
		r.Fact("fio.size") != "" || r.Fact("fio.direct") != "")
}

func pageCache(r measuredRun) ([]Finding, int) {
	if !ofFio(r) {
		return nil, 0
	}
	_, syncs := number(r.Run, metric.Sync+metric.Mean)
	if direct := r.Fact("fio.direct"); syncs || direct != "" && direct != "0" {
		return nil, 1
	}
	return oneFinding("", "The job went through the page cache."), 1
}

func depthWithoutEffect(r measuredRun) ([]Finding, int) {
	depth := count(r.Facts, "fio.iodepth")
	if !ofFio(r) || depth < 2 {
		return nil, 0
	}
	engine := r.Fact("fio.ioengine")
	if !slices.Contains([]string{"", "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"}, engine) {
		return nil, 1
	}
	if engine == "" {
		engine = "psync, which is the default"
	}
	return oneFinding("", "iodepth=%d with ioengine %s.", depth, engine), 1
}

func jobsAtOnce(r measuredRun) ([]Finding, int) {
	if !ofFio(r) {
		return nil, 0
	}
	if n := count(r.Facts, FactJobsAtOnce); n > 1 {
		return oneFinding("", "%d jobs ran at the same time.", n), 1
	}
	return nil, 1
}

func smallFile(r measuredRun) ([]Finding, int) {
	size := fioSize(r.Fact("fio.size"))
	bits, ok := number(r.Run, metric.Throughput)
	if !ofFio(r) || size == 0 || !ok || bits <= 0 {
		return nil, 0
	}
	if n := count(r.Facts, "fio.numjobs"); n > 1 && r.Fact("fio.filename") == "" {
		size *= float64(n) // each job has its own file
	}
	seconds := size * 8 / bits
	if seconds >= sizeSeconds {
		return nil, 1
	}
	return oneFinding(metric.Throughput, "The file has %s, which is %.2g s at %s.",
		unit.Format(size, unit.Byte), seconds, unit.Format(bits, unit.BitPerSecond)), 1
}

// fioSize reads fio's sizes, in which by default 4k is 4096 and 4ki is 4000; 0 if the text is no size.
func fioSize(text string) float64 {
	text = strings.TrimSuffix(strings.ToLower(text), "b")
	base := 1024.0
	if rest, is := strings.CutSuffix(text, "i"); is {
		text, base = rest, 1000
	}
	exponent := 0
	if n := len(text); n > 0 {
		if exponent = strings.IndexByte("kmgt", text[n-1]) + 1; exponent > 0 {
			text = text[:n-1]
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || v > 1e18 {
		return 0
	}
	return v * math.Pow(base, float64(exponent))
}

func unwritten(r measuredRun) ([]Finding, int) {
	if !ofFio(r) || !r.planned.Load.Reads {
		return nil, 0
	}
	if r.Fact(FactTouched) != "device" {
		return nil, 1
	}
	return oneFinding("", "The job reads %s, and nothing says that it was written before.", r.Fact("fio.filename")), 1
}

func noLatency(r measuredRun) ([]Finding, int) {
	if !ofFio(r) {
		return nil, 0
	}
	if v := r.Fact("fio.gtod-reduce"); v == "" || v == "0" {
		return nil, 1
	}
	return oneFinding(metric.Rate, "gtod_reduce=1: there are no latencies."), 1
}

func checkSyncLatency(r measuredRun) ([]Finding, int) {
	p99, ok := number(r.Run, metric.Sync+metric.P99)
	if !r.planned.Load.Volume || !ok {
		return nil, 0
	}
	if p99 < etcdFloor {
		return nil, 1
	}
	return oneFinding(metric.Sync+metric.P99, "%s.", unit.Format(p99, unit.Second)), 1
}
