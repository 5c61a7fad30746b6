package fio

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// The rule for the size of a file: ruleWindows times the window at the volume's bandwidth, so that a run at full
// bandwidth uses no offset twice and a cache holds only a small part; at most 25 s, as in kbench. The bandwidth is
// measured in the first seconds of writing the file.
const (
	ruleWindows = 2.5
	ruleLeast   = 5 * time.Second
	ruleMost    = 25 * time.Second
	probeFor    = 2 * time.Second
	fillAtMost  = 3 * time.Minute
	givenAtMost = 10 * time.Minute // for a size that the job sets, which has to be written completely
	leastSize   = 64 << 20         // bytes, if the volume has room for it
	smallest    = 1 << 20          // bytes; also the unit in which files are written
	unknownSize = 16 << 30         // bytes to use of a volume whose size is unknown
)

// A layout is a completely written file, and how it was written.
type layout struct {
	workFile workFile
	size     int64
	given    int64 // bytes of all its files, if the job sets their size
	rule     string
	probe    float64 // bytes per second; 0: not measured
	seconds  float64 // duration of the writing
	kept     bool    // written by an earlier run
	warnings []result.Warning
}

// facts returns facts about the file.
func (l layout) facts() []result.Fact {
	filled := "for this run, in " + unit.Format(l.seconds, unit.Second)
	if l.kept {
		filled = "for an earlier run"
	}
	return []result.Fact{
		{Name: "layout.size", Value: strconv.FormatInt(l.size, 10) + " B"}, {Name: "layout.rule", Value: l.rule},
		{Name: "layout.filled", Value: filled},
	}
}

// sizeClass returns the part of a file's name for what determines its size.
func (j job) sizeClass() string {
	switch {
	case j.files > 0:
		return fmt.Sprintf("%dx%d", j.files, j.size)
	case j.size > 0:
		return strconv.FormatInt(j.size, 10)
	}
	return "data"
}

// total returns the size of all files of the job, 0 if the rule determines it.
func (j job) total() int64 { return j.size * int64(max(j.files, 1)) }

// floorMiB rounds down to whole MiB, the unit in which files are written.
func floorMiB(size int64) int64 { return size / smallest * smallest }

// upToWhole rounds up to whole MiB.
func upToWhole(size int64) int64 { return floorMiB(size + smallest - 1) }

// maxFileSize returns the largest size of a file on the volume, 0 if it is too small for any.
func maxFileSize(v host.Volume) int64 {
	if v.Size == 0 {
		return unknownSize
	}
	return floorMiB(v.Size)
}

// sizeByRule returns the size by the rule, bounded by most; warning is set if the bound applies and the bandwidth is
// known.
func sizeByRule(bandwidth float64, window time.Duration, most int64) (size int64, rule, warning string) {
	seconds := min(max(ruleLeast, time.Duration(ruleWindows*float64(window))), ruleMost).Seconds()
	wanted := math.Max(leastSize, seconds*bandwidth)
	rule = fmt.Sprintf("%.3g s of the bandwidth of its filling", seconds)
	if wanted <= leastSize {
		rule = "64 MiB at least"
	}
	if wanted <= float64(most) {
		return upToWhole(int64(wanted)), rule, ""
	}
	if bandwidth <= 0 {
		return most, "as much as may be used of the volume", ""
	}
	return most, "as much as may be used of the volume", fmt.Sprintf("the file has %s, which is %.2g s of the volume's "+
		"bandwidth and not %.3g: a cache may serve a part of it; with a larger volume, or size=, it can be larger",
		unit.Format(float64(most), unit.Byte), float64(most)/bandwidth, seconds)
}

// layOut writes the file of a job, unless an earlier run did.
func (r *run) layOut(ctx context.Context, j job) (layout, error) {
	v := r.pair.Volume
	at := fileKey{r.pair.Client.Name(), v.Path, v.Kept, j.sizeClass()}
	if l, is := r.tool.known(at); is {
		l.kept = true
		return l, nil
	}
	l, err := r.fill(ctx, j, r.tool.given(at))
	if err == nil && v.Kept != "" {
		r.tool.keep(at, l)
	}
	return l, err
}

// fill writes the file of a job. others is how many bytes other files of given sizes take on the volume.
func (r *run) fill(ctx context.Context, j job, others int64) (layout, error) {
	l := layout{size: j.size, given: upToWhole(j.total()), rule: j.why}
	var err error
	if l.workFile, err = j.workFile(r.pair.Volume); err != nil {
		return l, err
	}
	most := maxFileSize(r.pair.Volume)
	if r.pair.Volume.Device {
		others = 0 // overwritten
	}
	if most == 0 || l.given > 0 && l.given+others > most {
		beside := ""
		if others > 0 {
			beside = ", besides " + unit.Format(float64(others), unit.Byte) + " for other jobs"
		}
		return l, &volumeError{fmt.Sprintf("%s on %s has %s to use, and the file of %s takes %s%s: free some space, or let "+
			"more be used with size=", r.pair.Volume.Path,
			r.pair.Client.Name(), unit.Format(float64(r.pair.Volume.Size), unit.Byte), j.name,
			unit.Format(math.Max(float64(j.total()), smallest), unit.Byte), beside), errNoRoom}
	}
	began := time.Now()
	if j.size == 0 {
		err = r.fillByRule(ctx, j, most, &l)
	} else {
		err = r.fillGiven(ctx, j, l.workFile)
	}
	l.seconds = time.Since(began).Seconds()
	return l, err
}

// fillGiven writes a file whose size the job sets.
func (r *run) fillGiven(ctx context.Context, j job, p workFile) error {
	text := filling("fill", p, j.direct, 0, upToWhole(j.size), givenAtMost)
	side, err := r.write(ctx, "fill", text, givenAtMost, j.direct)
	if err == nil && int64(side.Bytes) < j.total() {
		err = fmt.Errorf("%s on %s: only %s of the %s that %s asks for were written in %v",
			r.pair.Volume.Path, r.pair.Client.Name(),
			unit.Format(side.Bytes, unit.Byte), unit.Format(float64(j.total()), unit.Byte), j.name, givenAtMost)
	}
	return err
}

// fillByRule measures the bandwidth with the first part of the file, determines the size, and writes the rest.
func (r *run) fillByRule(ctx context.Context, j job, most int64, l *layout) error {
	side, err := r.write(ctx, "probe", filling("probe", l.workFile, j.direct, 0, most, probeFor), fillAtMost, j.direct)
	if err != nil {
		return err
	}
	l.probe = side.Bandwidth
	written := floorMiB(int64(side.Bytes))
	size, rule, warning := sizeByRule(side.Bandwidth, r.times.Window, most)
	l.size, l.rule = size, rule
	if warning != "" {
		l.warnings = append(l.warnings, result.Warning{Code: result.FileSmall, Text: warning})
	}
	if written < size {
		text := filling("fill", l.workFile, j.direct, written, size, fillAtMost)
		side, err := r.write(ctx, "fill", text, fillAtMost, j.direct)
		if err != nil {
			return err
		}
		written += floorMiB(int64(side.Bytes))
	}
	if written < size {
		text := fmt.Sprintf("the file has %s and not the %s that the rule asks for: more was not written in %v",
			unit.Format(float64(written), unit.Byte), unit.Format(float64(size), unit.Byte), fillAtMost)
		l.warnings = append(l.warnings, result.Warning{Code: result.FileSmall, Text: text})
		l.size, l.rule = written, fmt.Sprintf("what could be written in %v", fillAtMost)
	}
	if l.size < smallest {
		return fmt.Errorf("%s on %s took less than a MiB in %v", r.pair.Volume.Path, r.pair.Client.Name(), fillAtMost)
	}
	return nil
}

// write runs a job that fills a file, for at most the duration most, and returns what it wrote.
func (r *run) write(ctx context.Context, name, text string, most time.Duration, direct bool) (Side, error) {
	p, err := r.fio(ctx, name, text, most, direct)
	if err != nil {
		return Side{}, fmt.Errorf("writing the file that is to be measured: %w", err)
	}
	o, err := p.whole()
	if err != nil {
		return Side{}, err
	}
	return o.Jobs[0].Write, nil
}
