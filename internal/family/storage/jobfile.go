package storage

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Users' job files are read strictly, because fio's options can run programs and write to any file. A suite makes a
// case of each job. The tool that runs fio checks the text again, because it is kept in the results directory, which
// can be edited.

// Limits of a file.
const (
	maxFile     = 64 << 10 // bytes
	maxSections = 64
	maxLine     = 1024

	maxOwnJobs = 256 // numjobs of a job
)

// ErrJobFile is wrapped by every error about a job file.
var ErrJobFile = errors.New("not a job file that can be run")

// An Option is a line of a section. A flag such as time_based has no value.
type Option struct{ Key, Value string }

// String returns the option as a line of a job file.
func (o Option) String() string {
	if o.Value == "" {
		return o.Key
	}
	return o.Key + "=" + o.Value
}

// A Section is a job of a file, with the global options before it.
type Section struct {
	Name        string
	Global, Own []Option
}

// Get returns the effective value of an option: the last one of the job's own section, else the last global one. is
// reports whether there is one. The key may be the long form or the short one, such as readwrite or rw.
func (s Section) Get(key string) (value string, is bool) {
	key = canonical(key)
	for _, list := range [][]Option{s.Global, s.Own} {
		for _, o := range list {
			if canonical(o.Key) == key {
				value, is = o.Value, true
			}
		}
	}
	return value, is
}

// Text returns a job file with this job alone, as [ParseFile] reads it.
func (s Section) Text() string {
	var b strings.Builder
	section := func(name string, options []Option) {
		fmt.Fprintf(&b, "[%s]\n", name)
		for _, o := range options {
			fmt.Fprintln(&b, o)
		}
	}
	if len(s.Global) > 0 {
		section(global, s.Global)
	}
	section(s.Name, s.Own)
	return b.String()
}

const global = "global"

// ParseFile reads the jobs of a file, at least one. Every error wraps [ErrJobFile] and begins with the file's name and
// a line.
func ParseFile(file string, data []byte) ([]Section, error) {
	fail := func(line int, format string, a ...any) error {
		return fmt.Errorf("%s:%d: %w: %w", file, line, ErrJobFile, fmt.Errorf(format, a...))
	}
	if len(data) > maxFile {
		return nil, fail(1, "it has more than %d bytes", maxFile)
	}
	var jobs []Section
	var common []Option
	section, lines := "", map[string]int{}
	for i, text := range strings.Split(string(data), "\n") {
		n := i + 1
		line := strings.TrimSpace(strings.TrimSuffix(text, "\r"))
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if err := checkLine(line); err != nil {
			return nil, fail(n, "%w", err)
		}
		if name, is := header(line); is {
			if err := checkName(name, lines); err != nil {
				return nil, fail(n, "%w", err)
			}
			if section = name; name != global {
				lines[name] = n
				jobs = append(jobs, Section{Name: name, Global: common[:len(common):len(common)]})
			}
			continue
		}
		o, err := parseOption(line)
		switch {
		case err != nil:
			return nil, fail(n, "%w", err)
		case section == "":
			return nil, fail(n, "%s stands before the first section, such as [global]", o)
		case section == global:
			common = append(common, o)
		default:
			last := &jobs[len(jobs)-1]
			last.Own = append(last.Own, o)
		}
	}
	if len(jobs) == 0 || len(jobs) > maxSections {
		return nil, fail(1, "it has %d jobs, and not from 1 to %d: a job is a section such as [read] with its options",
			len(jobs), maxSections)
	}
	return jobs, checkComplete(jobs, lines, fail)
}

// checkComplete checks that every job has an rw, that its size, if any, is valid, and that its load is limited.
func checkComplete(jobs []Section, lines map[string]int, fail func(int, string, ...any) error) error {
	for _, j := range jobs {
		if _, is := j.Get("rw"); !is {
			return fail(lines[j.Name], "job %s does not say what it does: give it rw=, such as rw=randread", j.Name)
		}
		_, _, err := j.Size()
		if err == nil {
			err = j.checkLoad()
		}
		if err != nil {
			return fail(lines[j.Name], "job %s: %w", j.Name, err)
		}
	}
	return nil
}

// checkLoad returns an error if the job starts more threads, or has more or larger operations in flight, than a machine
// should be asked for. fio would try: it reads numjobs=100k as 102400 threads.
func (s Section) checkLoad() error {
	jobs, err := s.count("numjobs", maxOwnJobs)
	if err != nil {
		return err
	}
	depth, err := s.count("iodepth", maxDepth)
	if err != nil {
		return err
	}
	block, err := s.maxBlock()
	if err != nil {
		return err
	}
	return checkBuffers(jobs, depth, block)
}

// count returns the value of an option that counts from 1 to most; 1 if it is not set.
func (s Section) count(key string, most int) (int64, error) {
	text, is := s.Get(key)
	if !is {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s=%s is not a number from 1 to %d", key, text, most)
	}
	return int64(n), nil
}

// maxBlock returns the size in bytes of the job's largest operation: of bs=4k,64k it is 65536, and of
// bssplit=4k/10:1m/90 one MiB.
func (s Section) maxBlock() (int64, error) {
	largest := int64(4096) // fio's default
	for _, key := range []string{"bs", "bsrange", "bssplit"} {
		text, _ := s.Get(key)
		for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",:-", r) }) {
			part, _, _ = strings.Cut(part, "/")
			n, err := parseSize(part)
			if err != nil || n > maxBlock {
				return 0, fmt.Errorf("%s=%s: %q is not a size up to %d bytes", key, text, part, maxBlock)
			}
			largest = max(largest, n)
		}
	}
	return largest, nil
}

// checkLine refuses what fio interprets instead of taking literally: comments at the end of a line, variables of the
// environment, and bytes that editors do not show.
func checkLine(line string) error {
	if len(line) > maxLine {
		return fmt.Errorf("the line has more than %d bytes", maxLine)
	}
	for _, r := range line {
		switch {
		case r < ' ' && r != '\t' || r > '~':
			return fmt.Errorf("the line has the character %q", r)
		case strings.ContainsRune("$\"'`\\", r):
			return fmt.Errorf("the line has %q; variables and quotes are not allowed, so that the file says itself what "+
				"is run", r)
		case r == '#' || r == ';':
			return errors.New("a comment takes a line of its own")
		}
	}
	return nil
}

func header(line string) (name string, is bool) {
	if !strings.HasPrefix(line, "[") || !strings.HasSuffix(line, "]") {
		return "", false
	}
	return line[1 : len(line)-1], true
}

// checkName checks the name of a section, which becomes part of a case's name. taken has the lines of earlier jobs.
func checkName(name string, taken map[string]int) error {
	if !ownName.MatchString(name) {
		return fmt.Errorf("a case is named by its job, so its name is letters, digits, dots, dashes and underscores, "+
			"not %q", name)
	}
	if first, is := taken[name]; is {
		return fmt.Errorf("there is a job %s already, in line %d", name, first)
	}
	return nil
}

func parseOption(line string) (Option, error) {
	key, value, _ := strings.Cut(line, "=")
	o := Option{Key: strings.ToLower(strings.TrimSpace(key)), Value: strings.TrimSpace(value)}
	return o, o.check()
}

// Size returns how many bytes of its file the job covers; is reports whether the job sets a valid size.
func (s Section) Size() (bytes int64, is bool, err error) {
	text, is := s.Get("size")
	if !is {
		return 0, false, nil
	}
	bytes, err = parseSize(text)
	return bytes, err == nil, err
}

// Number returns the value of an option as a whole number, or otherwise if the job does not set a valid one.
func (s Section) Number(key string, otherwise int) int {
	text, _ := s.Get(key)
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// Flag reports whether an option is on: it is set, and its value is not 0.
func (s Section) Flag(key string) bool {
	text, is := s.Get(key)
	return is && text != "0"
}

var (
	fileTime  = regexp.MustCompile(`^(\d{1,7})(ms|us|s|m|h|)$`)
	timeUnits = map[string]time.Duration{
		"ms": time.Millisecond, "us": time.Microsecond, "": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour,
	}
)

// Duration returns the value of an option as a time; 0 if the job does not set a valid one.
func (s Section) Duration(key string) time.Duration {
	text, _ := s.Get(key)
	m := fileTime.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	if n > 1e6 {
		return 0
	}
	return time.Duration(n) * timeUnits[m[2]]
}

var fileSize = regexp.MustCompile(`^(\d{1,15})(?:([kmgt])(i?))?b?$`)

// parseSize parses fio's sizes. With fio's default (kb_base=1024), 4k and 4kb are 4096 bytes, and 4ki and 4kib are
// 4000: the prefixes mean the opposite of their standard meaning.
func parseSize(text string) (int64, error) {
	m := fileSize.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return 0, fmt.Errorf("%q is no size such as 4k, 22m or 10g", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	factor, base := int64(1), int64(1024)
	if m[3] != "" {
		base = 1000
	}
	for range strings.Index("kmgt", m[2]) + len(m[2]) {
		factor *= base
	}
	if err != nil || n < 1 || n > (1<<50)/factor {
		return 0, fmt.Errorf("a size of %s is not from 1 byte to 1 PiB", text)
	}
	return n * factor, nil
}
