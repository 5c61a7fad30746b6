package machine

import "testing"

func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:       8000 kB\nMemAvailable:   4000 kB\n"
	for _, c := range []struct {
		meminfo, limit, usage string
		want                  float64
	}{
		{meminfo, "", "", 4000 << 10},
		{meminfo, "max\n", "1000\n", 4000 << 10},
		{meminfo, "9223372036854771712\n", "1000\n", 4000 << 10},
		{meminfo, "3000\n", "1000\n", 2000},
		{meminfo, "3000\n", "3001\n", 0},
		{"", "3000\n", "1000\n", 2000},
		{"", "max", "1000", 0},
	} {
		if got := availableMemory([]byte(c.meminfo), c.limit, c.usage); got != c.want {
			t.Errorf("%+v: %g", c, got)
		}
	}
	if AvailableMemory() < 1<<20 {
		t.Error("this machine has no memory")
	}
}
