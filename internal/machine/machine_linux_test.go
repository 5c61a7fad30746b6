package machine

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestField(t *testing.T) {
	const two = "processor\t: 0\nmodel name\t: A : B\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\nmodel name\t: C\n"
	for _, c := range []struct{ name, cpuinfo, field, want string }{
		{"the first of two", two, "model name", "A : B"},
		{"not there", two, "model", ""},
		{"empty, then not", "flags\t\t: \nflags\t\t: fpu\n", "flags", "fpu"},
		{"no colon", "flags\n", "flags", ""},
		{"nothing", "", "flags", ""},
	} {
		if got := field([]byte(c.cpuinfo), c.field); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCPUModel(t *testing.T) {
	for _, c := range []struct{ cpuinfo, want string }{
		{"processor\t: 0\nmodel name\t: AMD EPYC 7763\n", "AMD EPYC 7763"},
		{"processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n",
			"CPU implementer 0x41, part 0xd0c"},
		{"processor\t: 0\nCPU implementer\t: 0x41\n", result.Unknown},
		{"", result.Unknown},
	} {
		if got := cpuModel([]byte(c.cpuinfo)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestSigns(t *testing.T) {
	for _, c := range []struct {
		name, cpuinfo string
		words         []string
		virtual       string
		confidential  []string
	}{
		{name: "a virtual machine", cpuinfo: "flags : fpu hypervisor",
			words: []string{"QEMU", "Standard PC"}, virtual: "virtual machine QEMU Standard PC"},
		{name: "whose firmware says nothing", cpuinfo: "flags : fpu hypervisor", virtual: "virtual machine"},
		{name: "a confidential one", cpuinfo: "flags : hypervisor sev sev_es",
			virtual: "virtual machine", confidential: []string{"CPU flag sev_es", "CPU flag sev"}},
		{name: "a host that could start such", cpuinfo: "flags : fpu sev sev_es",
			words: []string{"Maker"}, virtual: "none seen"},
		{name: "no x86", cpuinfo: "Features : fp", words: []string{"Maker"}, virtual: "Maker"},
		{name: "no x86 and no firmware", cpuinfo: "Features : fp", virtual: result.Unknown},
	} {
		f := flags([]byte(c.cpuinfo))
		if got := virtualisation(f, c.words); got != c.virtual {
			t.Errorf("%s: %q, want %q", c.name, got, c.virtual)
		}
		if got := confidentialFlags(f); !slices.Equal(got, c.confidential) {
			t.Errorf("%s: %q, want %q", c.name, got, c.confidential)
		}
	}
}

func TestFacts(t *testing.T) {
	names := []string{"kernel", "architecture", "cpu-model", "cpus", "memory", result.ConfidentialVM}
	for i, f := range Facts() {
		if i >= len(names) || f.Name != names[i] || f.Value == "" {
			t.Errorf("fact %d: %+v", i, f)
		}
	}
}

func TestFrequencyOf(t *testing.T) {
	const text = "processor\t: 0\ncpu MHz\t\t: 2596.000\n\n" +
		"processor\t: 1\nmodel name\t: x\ncpu MHz\t\t: 3100.5\n\nprocessor : 2\n"
	for cpu, want := range []float64{2596, 3100.5, 0, 0} {
		if got := frequencyOf(text, cpu); got != want {
			t.Errorf("CPU %d has %g MHz", cpu, got)
		}
	}
}
