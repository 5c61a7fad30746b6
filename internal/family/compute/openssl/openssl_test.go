package openssl

import (
	"math"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program/programtest"
)

func TestCommandLines(t *testing.T) { programtest.CommandLines(t, New()) }

// recorded has the names of files with what openssl 3.0.19 printed, on two CPUs where the name ends
// in 2, and the results that a reader finds in them.
var recorded = []struct {
	file string
	kind compute.Kind
	want float64
}{
	{"aes-256-gcm", compute.AES256GCM, 1461663683.17},
	{"aes-256-gcm-2", compute.AES256GCM, 1107918848},
	{"sha-256", compute.SHA256, 650985472},
	{"ecdsa-p256", compute.ECDSAP256Sign, 14852},
	{"ecdsa-p256", compute.ECDSAP256Verify, 3878},
	{"ecdsa-p256-2", compute.ECDSAP256Sign, 13503.529520},
	{"ecdsa-p256-2", compute.ECDSAP256Verify, 4415.682243},
}

func TestRecorded(t *testing.T) {
	for _, r := range recorded {
		f, err := algorithms[r.kind].parse(programtest.Recorded(t, r.file), 3)
		if err != nil || math.Abs(f.PerSecond/r.want-1) > 1e-9 {
			t.Errorf("%s in %s: %f, %v; want %f", r.kind, r.file, f.PerSecond, err, r.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"", "speed: Unknown algorithm x", "+F:22:AES-256-GCM:", "+F:22:AES-256-GCM:x",
		"+F:22:AES-256-GCM:0.00", "+F:22:AES-256-GCM:NaN", "+F:22", "Got: +F:22:AES-256-GCM:7.00 from 0"} {
		if f, err := algorithms[compute.AES256GCM].parse([]byte(text), 3); err == nil {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestSupports(t *testing.T) {
	programtest.Reasons(t, New(), map[string]string{
		"aes-256-gcm": "", "sha-256:cpus=all": "", "ecdsa-p256-sign:cpus=8": "", "ecdsa-p256-verify": "",
		"sha-256:cpus=core": "cpus=all", "sort": "ciphers", "sysbench-cpu": "ciphers",
	})
}

// FuzzParse checks that any output gives an error or a positive number.
func FuzzParse(f *testing.F) {
	for _, r := range recorded {
		f.Add(programtest.Recorded(f, r.file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for kind, a := range algorithms {
			if got, err := a.parse(text, 3); err == nil && !(got.PerSecond > 0) {
				t.Errorf("%s: %g", kind, got.PerSecond)
			}
		}
	})
}
