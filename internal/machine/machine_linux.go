package machine

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Facts are those that every machine has, of its kernel, its CPUs and its memory.
func Facts() []result.Fact {
	return []result.Fact{
		{Name: "kernel", Value: kernel()},
		{Name: "architecture", Value: runtime.GOARCH},
		{Name: "cpu-model", Value: known(field(cpuinfo(), "model name"))},
		{Name: "cpus", Value: strconv.Itoa(runtime.NumCPU())},
		{Name: "memory", Value: memory()},
	}
}

// BootID is the name that the kernel gave itself at its start: equal in two places only if they are on one machine.
func BootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// vendors are where firmware and hypervisors say who made the machine.
var vendors = []string{"/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"}

// Virtualisation is a hint: x86 CPUs say whether there is a hypervisor, firmware often says which.
func Virtualisation() string {
	var words []string
	for _, name := range vendors {
		text, err := os.ReadFile(name)
		if word := strings.TrimSpace(string(text)); err == nil && word != "" {
			words = append(words, word)
		}
	}
	return virtualisation(flags(cpuinfo()), words)
}

func virtualisation(flags, words []string) string {
	switch {
	case slices.Contains(flags, "hypervisor"):
		return strings.TrimSpace("virtual machine " + strings.Join(words, " "))
	case len(flags) > 0:
		return "none seen"
	case len(words) > 0:
		return strings.Join(words, " ")
	}
	return result.Unknown
}

// guestDevices are there in confidential virtual machines alone.
var guestDevices = []string{
	"/sys/devices/virtual/misc/sev-guest", "/sys/devices/virtual/misc/tdx_guest", "/sys/kernel/security/secrets/coco",
}

// Confidential names the signs of a confidential virtual machine that its inside shows.
func Confidential() string {
	signs := confidential(flags(cpuinfo()))
	for _, pattern := range guestDevices {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			signs = append(signs, filepath.Base(pattern))
		}
	}
	if len(signs) == 0 {
		return "no sign seen"
	}
	return strings.Join(signs, ", ")
}

func confidential(flags []string) (signs []string) {
	for _, flag := range []string{"tdx_guest", "sev_snp", "sev_es", "sev"} {
		// A host that could start such machines has the flags of SEV too, but no hypervisor below it.
		if slices.Contains(flags, flag) && slices.Contains(flags, "hypervisor") {
			signs = append(signs, "CPU flag "+flag)
		}
	}
	return signs
}

func kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return result.Unknown
	}
	return unix.ByteSliceToString(name.Release[:])
}

func memory() string {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return result.Unknown
	}
	return unit.Format(float64(info.Totalram)*float64(info.Unit), unit.Byte)
}

func cpuinfo() []byte {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return text
}

// flags are the features that x86 CPUs name; others have none.
func flags(cpuinfo []byte) []string { return strings.Fields(field(cpuinfo, "flags")) }

// field is the value of the first line of /proc/cpuinfo with that name, empty if there is none.
func field(cpuinfo []byte, name string) string {
	lines := bufio.NewScanner(bytes.NewReader(cpuinfo))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
