package fio

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/family"
)

// ErrOutput is wrapped by every error about the text that fio printed.
var ErrOutput = errors.New("not the JSON of fio")

// Output is fio's JSON, as in 3.0 to 3.42. Importers read other people's output with it, too.
type Output struct {
	Version string            `json:"fio version"`
	Time    float64           `json:"timestamp"` // of the end, seconds since 1970
	Global  map[string]string `json:"global options"`
	Jobs    []Job             `json:"jobs"`
	Clients []json.RawMessage `json:"client_stats"` // of a fio client with several machines
}

// A Job is a job, or with group_reporting a whole group.
type Job struct {
	Name    string            `json:"jobname"`
	Start   float64           `json:"job_start"` // ms since 1970, in newer versions
	Group   int               `json:"groupid"`
	Error   int               `json:"error"`   // errno
	Elapsed float64           `json:"elapsed"` // s, with the ramp
	Options map[string]string `json:"job options"`
	Read    Side              `json:"read"`
	Write   Side              `json:"write"`
	Trim    Side              `json:"trim"`
	Sync    struct {
		Latency Latency `json:"lat_ns"`
		Total   float64 `json:"total_ios"`
	} `json:"sync"`
	User   float64 `json:"usr_cpu"` // per cent of a CPU, per process or thread
	System float64 `json:"sys_cpu"`
	Steady struct {
		Attained int `json:"attained"`
	} `json:"steadystate"`
	Levels map[string]float64 `json:"iodepth_level"` // per cent of submissions, by their smallest depth, a power of two
}

// A Side holds the reads, the writes or the trims of a job.
type Side struct {
	Bytes      float64 `json:"io_bytes"`
	Bandwidth  float64 `json:"bw_bytes"` // per second
	KiB        float64 `json:"bw"`       // KiB per second; the only bandwidth in kubestr's copy
	Rate       float64 `json:"iops"`     // total over runtime; iops_mean is of samples of 500 ms
	Runtime    float64 `json:"runtime"`  // ms, without the ramp
	Total      float64 `json:"total_ios"`
	Short      float64 `json:"short_ios"`
	Dropped    float64 `json:"drop_ios"`
	Submission Latency `json:"slat_ns"`
	Completion Latency `json:"clat_ns"` // from the end of submission
	Whole      Latency `json:"lat_ns"`  // submission and completion; bins only with lat_percentiles=1
}

// A Latency is a distribution in ns. fio prints percentiles unless they are turned off, and bins only with json+.
type Latency struct {
	Min         float64            `json:"min"`
	Max         float64            `json:"max"`
	Mean        float64            `json:"mean"`
	N           float64            `json:"N"`
	Percentiles map[string]float64 `json:"percentile"`
	Bins        map[string]float64 `json:"bins"`
}

// moved reports whether there were operations on that side.
func (s Side) moved() bool { return s.Bytes > 0 || s.Total > 0 || s.Rate > 0 }

// latency returns the latency of whole operations if its distribution is known, else that of completion.
func (s Side) latency() Latency {
	if len(s.Whole.Bins) > 0 || len(s.Whole.Percentiles) > 0 {
		return s.Whole.of(s.Total)
	}
	return s.Completion.of(s.Total)
}

// of returns the latency of a number of operations, if fio does not state it: versions before 3.15 have no N. Latencies
// that were not measured have no mean either.
func (l Latency) of(operations float64) Latency {
	if l.N == 0 && l.Mean > 0 {
		l.N = operations
	}
	return l
}

// Option returns the value of an option of a job under one of its names; "" if it was not set.
func (o Output) Option(job Job, names ...string) string {
	for _, name := range names {
		if v := cmp.Or(job.Options[name], o.Global[name]); v != "" {
			return v
		}
	}
	return ""
}

// A Group holds the jobs of one measurement: those with the same name and group, which numjobs makes without
// group_reporting.
type Group struct {
	First int // index of the first in Output.Jobs
	Jobs  []Job
	out   *Output
}

// Groups returns the groups of jobs in order.
func (o *Output) Groups() []Group {
	var all []Group
	at := map[string]int{}
	for i, job := range o.Jobs {
		key := fmt.Sprintf("%d %s", job.Group, job.Name)
		if n, seen := at[key]; seen {
			all[n].Jobs = append(all[n].Jobs, job)
			continue
		}
		at[key] = len(all)
		all = append(all, Group{First: i, Jobs: []Job{job}, out: o})
	}
	return all
}

// threads returns the number of processes or threads of a group; with group_reporting it is known only from the
// options.
func (g Group) threads() int {
	n, err := strconv.Atoi(g.out.Option(g.Jobs[0], "numjobs"))
	if len(g.Jobs) > 1 || err != nil || n < 1 {
		return len(g.Jobs)
	}
	return n
}

// printed holds the output of a command: with --status-interval several documents, the last of which covers the whole
// run.
type printed struct {
	notes     string // text outside the documents
	documents []Output
	last      []byte // the text of the last document
}

// parse reads the output of a command.
func parse(text []byte) (printed, error) {
	var p printed
	start := bytes.IndexByte(text, '{')
	if start < 0 {
		return printed{notes: string(text)}, fmt.Errorf("%w: %s", ErrOutput, family.Excerpt(text))
	}
	p.notes = string(text[:start])
	for len(text) > start {
		d := json.NewDecoder(bytes.NewReader(text[start:]))
		var o Output
		if err := d.Decode(&o); err != nil {
			return p, fmt.Errorf("%w: %w: %s", ErrOutput, err, family.Excerpt(text[start:]))
		}
		if o.Version == "" {
			return p, fmt.Errorf("%w: it has no fio version", ErrOutput)
		}
		end := start + int(d.InputOffset())
		p.documents, p.last = append(p.documents, o), text[start:end]
		next := bytes.IndexByte(text[end:], '{')
		if next < 0 {
			p.notes += string(text[end:])
			break
		}
		p.notes += string(text[end : end+next])
		start = end + next
	}
	return p, nil
}

// whole returns the last document, which covers the whole run.
func (p printed) whole() (*Output, error) {
	if len(p.documents) == 0 {
		return nil, fmt.Errorf("%w: it printed nothing", ErrOutput)
	}
	o := &p.documents[len(p.documents)-1]
	if len(o.Jobs) != 1 {
		return nil, fmt.Errorf("%w: it has %d jobs, and not the one that was run", ErrOutput, len(o.Jobs))
	}
	return o, nil
}
