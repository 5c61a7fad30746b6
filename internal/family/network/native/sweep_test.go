package native

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

func TestASweepNeedsTime(t *testing.T) {
	here := host.NewLocal("here", netip.MustParseAddr("127.0.0.1"), nil)
	pair := host.Pair{Client: here, Server: here}
	w := network.Spec{Kind: network.UDPStream, Duration: 100 * time.Millisecond}
	if _, err := New().plan(pair, w); !errors.Is(err, result.ErrNotSupported) ||
		!strings.Contains(err.Error(), "at least 200ms") {
		t.Errorf("got %v", err)
	}
	w.Rate = 1000
	if _, err := New().plan(pair, w); err != nil {
		t.Errorf("with a rate: %v", err)
	}
}
