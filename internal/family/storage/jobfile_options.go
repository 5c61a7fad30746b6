package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// canonical returns the name of the option of which key is an alias, or key itself.
func canonical(key string) string {
	return cmp.Or(aliases[key], key)
}

// aliases maps aliases to the names of options. buffered has a name of its own, because its meaning is the opposite of
// that of direct.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "blockalign": "ba", "startdelay": "start_delay",
	"buffered": "direct.not", "timeout": "runtime",
}

// check returns an error if a job must not have the option.
func (o Option) check() error {
	switch {
	case strings.HasPrefix(o.Key, "log_"):
		return fmt.Errorf("%s: %s", o.Key, logs)
	case refused[o.Key] != "":
		return fmt.Errorf("%s: %s", o.Key, refused[o.Key])
	case !slices.Contains(allowed, o.Key):
		return fmt.Errorf("%s is not among the options that are known to change nothing but the job itself; "+
			"docs/storage.md lists them", o.Key)
	case o.Key == "ioengine" && !slices.Contains(engines, o.Value):
		return fmt.Errorf("ioengine=%s: it is one of %s; others load code or leave the volume",
			o.Value, strings.Join(engines, ", "))
	case canonical(o.Key) == "rw" && !slices.Contains(patterns, beforeColon(o.Value)):
		return fmt.Errorf("%s: it is one of %s", o, strings.Join(patterns, ", "))
	case o.Value == "" && !slices.Contains(flags, o.Key):
		return fmt.Errorf("%s has no value", o.Key)
	}
	return nil
}

// beforeColon returns the part before the colon: in rw=randread:8 it is randread.
func beforeColon(value string) string { value, _, _ = strings.Cut(value, ":"); return value }

// engines are the permitted I/O engines: those that only make system calls on the job's own file.
var engines = []string{"libaio", "io_uring", "sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio", "mmap"}

var patterns = append(slices.Clip(readWrites), "readwrite")

// flags are the options that need no value.
var flags = []string{
	"time_based", "group_reporting", "thread", "stonewall", "wait_for_previous", "new_group", "exitall", "norandommap",
	"refill_buffers", "zero_buffers", "overwrite", "hipri", "fixedbufs", "registerfiles", "nonvectored",
	"userspace_reap", "bs_unaligned",
}

// allowed are the options that only affect how the job reads and writes its file.
var allowed = append(slices.Clip(flags),
	"description", "rw", "readwrite", "rwmixread", "rwmixwrite", "rw_sequencer", "percentage_random",
	"random_distribution", "random_generator", "randrepeat", "allrandrepeat", "randseed", "softrandommap",
	"bs", "blocksize", "bsrange", "blocksize_range", "bssplit", "bs_is_seq_rand", "ba", "blockalign", "size",
	"ioengine", "iodepth", "iodepth_batch", "iodepth_batch_submit", "iodepth_batch_complete",
	"iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low", "io_submit_mode", "numjobs",
	"direct", "buffered", "sync", "fsync", "fdatasync", "write_barrier", "invalidate", "fadvise_hint", "fallocate",
	"end_fsync", "fsync_on_close",
	"runtime", "timeout", "ramp_time", "start_delay", "startdelay", "thinktime", "thinktime_spin", "thinktime_blocks",
	"rate", "rate_min", "rate_iops", "rate_iops_min", "rate_process", "latency_target", "latency_window",
	"latency_percentile", "scramble_buffers", "buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage",
	"cpus_allowed", "cpus_allowed_policy", "nice", "prio", "prioclass",
	"percentile_list", "clat_percentiles", "lat_percentiles", "slat_percentiles",
)

// Reasons for refusing options that are common in job files.
const (
	// logs refuses options that write elsewhere than to the job's own file.
	logs = "it writes files elsewhere; the results have the whole output of fio, its histograms and a series of each " +
		"run"
	runs    = "it runs a program, and a job file from elsewhere must not"
	groups  = "it changes the machine's control groups"
	place   = "the file is chosen by Knotmeter, within the volume of the target"
	remote  = "fio's own clients and servers are not used; a target is a host"
	foreign = "it may use a file from elsewhere"
	latency = "it takes the latencies away, without which a rate says little; leave it out, or name a case such as " +
		"storage/randread-4k-qd64:gtod-reduce=yes"
	early  = "the job would end before the window does; leave it out, --duration is how long it runs"
	verify = "it checks what was written instead of measuring"
)

var refused = map[string]string{
	"exec_prerun": runs, "exec_postrun": runs, "exec": runs, "cgroup": groups, "cgroup_weight": groups,
	"filename": place, "directory": place, "filename_format": place, "nrfiles": place, "openfiles": place,
	"filesize": place, "opendir": place, "file_service_type": place, "unlink": place, "create_only": place,
	"create_on_open": place, "allow_file_create": place, "offset": place,
	"include": "what is included cannot be seen here; write it into the file", "client": remote, "server": remote,
	"read_iolog": "it replays a file from elsewhere", "write_iolog": logs, "write_bw_log": logs, "write_lat_log": logs,
	"write_iops_log": logs, "write_hist_log": logs, "per_job_logs": logs, "output": logs,
	"gtod_reduce": latency, "disable_lat": latency, "disable_clat": latency, "disable_slat": latency,
	"disable_bw_measurement": latency, "unified_rw_reporting": "reads and writes are told apart",
	"loops": early, "number_ios": early, "io_size": early, "io_limit": early, "steadystate": early, "ss": early,
	"max_latency": early, "verify": verify, "do_verify": verify, "buffer_pattern": "it may read a file from elsewhere",
	"mem": foreign, "iomem": foreign, "wait_for": "jobs run one after another, each alone",
}
