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

// Facts returns the facts that every machine has: its kernel, CPUs and memory, and whether it seems to be confidential.
func Facts() []result.Fact {
	return []result.Fact{
		{Name: "kernel", Value: kernel()},
		{Name: "architecture", Value: runtime.GOARCH},
		{Name: "cpu-model", Value: cpuModel(cpuinfo())},
		{Name: "cpus", Value: strconv.Itoa(runtime.NumCPU())},
		{Name: "memory", Value: memory()},
		{Name: result.ConfidentialVM, Value: confidential()},
	}
}

// cpuModel returns the name of the first CPU. Arm's have numbers instead, those of their designer and of the design.
func cpuModel(cpuinfo []byte) string {
	designer, design := field(cpuinfo, "CPU implementer"), field(cpuinfo, "CPU part")
	if name := field(cpuinfo, "model name"); name != "" || designer == "" || design == "" {
		return orUnknown(name)
	}
	return "CPU implementer " + designer + ", part " + design
}

// BootID returns the kernel's random identifier of this boot. Two places with the same one are on the same machine.
func BootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// vendors are the files in which firmware and hypervisors name the maker of the machine.
var vendors = []string{"/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"}

// Virtualisation returns a hint about the hypervisor: x86 CPUs report that there is one, and firmware often names it.
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

// guestDevices are paths that exist only in confidential virtual machines.
var guestDevices = []string{
	"/sys/devices/virtual/misc/sev-guest", "/sys/devices/virtual/misc/tdx_guest", "/sys/kernel/security/secrets/coco",
}

// confidential lists the signs of a confidential virtual machine that are visible from inside, or
// [result.NoConfidentialSign].
func confidential() string {
	signs := confidentialFlags(flags(cpuinfo()))
	for _, pattern := range guestDevices {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			signs = append(signs, filepath.Base(pattern))
		}
	}
	if len(signs) == 0 {
		return result.NoConfidentialSign
	}
	return strings.Join(signs, ", ")
}

func confidentialFlags(flags []string) (signs []string) {
	for _, flag := range []string{"tdx_guest", "sev_snp", "sev_es", "sev"} {
		// A host that can start such machines has the flags of SEV too, but not the flag hypervisor.
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

// flags returns the feature flags of an x86 CPU; other architectures have none.
func flags(cpuinfo []byte) []string { return strings.Fields(field(cpuinfo, "flags")) }

// field returns the first non-empty value of that name in /proc/cpuinfo, or "".
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
