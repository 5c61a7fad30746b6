package native

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestStepDown checks that rates step down until a window keeps the threshold, windows run out or nothing is received.
func TestStepDown(t *testing.T) {
	spec := netload.Spec{Kind: netload.UDPStream, Loss: 0.001, Direction: netload.Forward}
	for _, test := range []struct {
		name     string
		received func(rate float64) float64 // per second
		windows  int
		least    float64 // of the last rate
	}{
		{"what was found is carried", func(rate float64) float64 { return rate }, 1, 10_000},
		{"too much was found", func(rate float64) float64 { return min(rate, 9000) }, 2, 9000},
		{"a path that always loses", func(rate float64) float64 { return rate * 0.99 }, netload.SearchWindows, 1500},
		{"a path that is down", func(float64) float64 { return 0 }, 1, 10_000},
	} {
		windows, last := 0, 0.0
		s, err := stepDown(10_000, func(n int, rate float64) (sides, error) {
			windows, last = n, rate
			received := uint64(test.received(rate))
			return sides{Spec: spec,
				Client: netload.Report{Window: 1, Sent: netload.Tally{Window: uint64(rate)}},
				Server: netload.Report{Window: 1, Received: netload.Tally{Window: received}, Arrived: received},
			}, nil
		})
		if err != nil || windows != test.windows || last < test.least || s.sent() != math.Floor(last) {
			t.Errorf("%s: %d windows, the last at %g: %v", test.name, windows, last, err)
		}
	}
}

func TestASweepNeedsTime(t *testing.T) {
	here := host.NewLocal("here", netip.MustParseAddr("127.0.0.1"), nil)
	pair := host.Pair{Client: here, Server: here}
	w := netload.Spec{Kind: netload.UDPStream, Duration: 100 * time.Millisecond}
	if _, err := New().plan(pair, w); !errors.Is(err, result.ErrNotSupported) ||
		!strings.Contains(err.Error(), "at least 200ms") {
		t.Errorf("got %v", err)
	}
	w.Rate = 1000
	if _, err := New().plan(pair, w); err != nil {
		t.Errorf("with a rate: %v", err)
	}
}
