package httpload

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestDistress(t *testing.T) {
	for _, test := range []struct {
		pulse ServerHealth
		want  string
	}{
		{ServerHealth{Ended: 100, Failed: 51}, "51 of 100 requests"},
		{ServerHealth{Ended: 100, TimedOut: 51}, "51 of 100 requests"},
		{ServerHealth{Ended: 100, Failed: 30, TimedOut: 30}, "60 of 100 requests"},
		{ServerHealth{Ended: 100, Failed: 50}, ""},
		{ServerHealth{Ended: 19, Failed: 19}, ""},
		{ServerHealth{Oldest: 31 * time.Second}, "waited 31 s"},
		{ServerHealth{Oldest: 29 * time.Second}, ""},
		{ServerHealth{Ended: 100, Mean: 6 * time.Second, Start: 200 * time.Millisecond}, "took 6 s in a second and 0.2 s"},
		// Slow, but no distress.
		{ServerHealth{Ended: 100, Mean: 4 * time.Second, Start: 20 * time.Millisecond}, ""},
		// As in a published run with 1300 clients.
		{ServerHealth{Ended: 100, Mean: 10 * time.Second, Start: 600 * time.Millisecond}, ""},
		{ServerHealth{Ended: 100, Mean: 10 * time.Second}, ""},
	} {
		if got := Distress(test.pulse); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q", test.pulse, got)
		}
	}
}

// TestDistressStops checks that a server that begins to fail ends the run, and one that responds does not, whatever the
// status.
func TestDistressStops(t *testing.T) {
	for status, stops := range map[int]bool{
		http.StatusOK: false, http.StatusNotFound: false,
		http.StatusTooManyRequests: true, http.StatusServiceUnavailable: true,
	} {
		for _, clients := range []int{0, 2} {
			t.Run(fmt.Sprint(status, clients), func(t *testing.T) {
				simulate(t, func(t *testing.T) {
					var asked atomic.Int64
					c := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						time.Sleep(time.Millisecond)
						if asked.Add(1) > 50 {
							w.WriteHeader(status)
						}
					})})
					c.Window, c.Distress = 2500*time.Millisecond, Distress
					if c.Clients = clients; clients == 0 {
						c.Rate = 100
					}
					if r := run(t, c); (r.Stopped != "") != stops {
						t.Errorf("stopped %q", r.Stopped)
					}
				})
			})
		}
	}
}

// TestPulse checks that a pulse covers the second before it: outcomes by kind, and how long they took.
func TestPulse(t *testing.T) {
	for timeout, check := range map[time.Duration]func(ServerHealth) bool{
		time.Minute: func(p ServerHealth) bool {
			return p.Failed+p.TimedOut == 0 && p.Mean.Round(time.Millisecond) == 150*time.Millisecond
		},
		50 * time.Millisecond: func(p ServerHealth) bool {
			return p.Failed == 0 && p.TimedOut == p.Ended && p.Mean >= 50*time.Millisecond
		},
	} {
		t.Run(timeout.String(), func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				var pulses []ServerHealth
				c := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					time.Sleep(150 * time.Millisecond)
				})})
				c.Rate, c.Window, c.Timeout = 100, 2200*time.Millisecond, timeout
				c.Distress = func(p ServerHealth) string { pulses = append(pulses, p); return "" }
				if run(t, c); len(pulses) == 0 {
					t.Error("no pulse")
				}
				for _, p := range pulses {
					if p.Ended == 0 || p.Start != pulses[0].Mean || !check(p) {
						t.Errorf("%+v", p)
					}
				}
			})
		})
	}
}

// TestImpatient checks that the short time-outs of a search do not count as distress.
func TestImpatient(t *testing.T) {
	p := ServerHealth{Ended: 100, TimedOut: 100}
	if Distress(p) == "" || withoutTimeouts(Distress)(p) != "" || withoutTimeouts(nil) != nil {
		t.Error("timeouts of a search's own are distress")
	}
	if p.Failed = 60; withoutTimeouts(Distress)(p) == "" {
		t.Error("failures are not distress")
	}
}
