package probe

import (
	"encoding/hex"
	"strings"
	"testing"
)

// traceOf returns a trace of probes 1 ms apart from a symbol for each: '.' answered after 100 µs, '!' lost, 'l'
// answered after 500 ms, ' ' not sent.
func traceOf(text string) Trace {
	const ms = 1_000_000
	t := Trace{Kind: UDP, Interval: ms}
	for n, what := range text {
		sent, answered := int64(n+1)*ms, int64(0)
		switch what {
		case ' ':
			sent = 0
		case '.':
			answered = sent + ms/10
		case 'l':
			answered = sent + 500*ms
		}
		t.Sent, t.Answered = append(t.Sent, sent), append(t.Answered, answered)
	}
	return t
}

func TestLoss(t *testing.T) {
	const ms = 1_000_000
	for _, test := range []struct {
		name, text            string
		sent, lost, late      int
		window, longest, from int64 // ms
	}{
		{"nothing", "......", 6, 0, 0, 0, 0, 0},
		{"one outage", "..!!!...", 8, 3, 0, 3, 3, 3},
		{"two outages", "..!!!.!!..", 10, 5, 0, 6, 3, 3},
		{"until the end", "...!!!!", 7, 4, 0, 5, 5, 4},
		{"late is not lost", "..lll...", 8, 0, 3, 0, 0, 0},
		{"late among lost", "..!l!..", 7, 2, 1, 3, 1, 3},
		{"what was not sent", "..!  !..", 6, 2, 0, 4, 4, 3},
	} {
		trace := traceOf(test.text)
		end := int64(len(test.text)+2) * ms
		got := trace.Loss(0, end)
		want := Loss{Sent: test.sent, Lost: test.lost, Late: test.late, Begin: test.from * ms, Longest: test.longest * ms}
		seen := Loss{Sent: got.Sent, Lost: got.Lost, Late: got.Late, Begin: got.Begin, Longest: got.Longest}
		if seen != want || got.Window() != test.window*ms {
			t.Errorf("%s: %+v with a window of %d ms, wanted %+v and %d ms", test.name, got, got.Window()/ms, want,
				test.window)
		}
	}
}

func TestArrivals(t *testing.T) {
	const ms = 1_000_000
	trace := traceOf("...!!!...")
	trace.Broken = []int64{4 * ms}
	if at := trace.First(3500_000); at != 7100_000 {
		t.Errorf("the first response after the outage came at %d", at)
	}
	if at := trace.Last(7 * ms); at != 3100_000 {
		t.Errorf("the last response before its end came at %d", at)
	}
	if at := trace.First(20 * ms); at != 0 {
		t.Errorf("a response at %d", at)
	}
	l := trace.Loss(0, 10*ms)
	if l.Gap != 4*ms || l.Broken != 1 || l.Slowest != 100_000 {
		t.Errorf("%+v", l)
	}
	if l := trace.Loss(5*ms, 10*ms); l.Broken != 0 || l.Sent != 5 {
		t.Errorf("a part: %+v", l)
	}
}

func TestLateness(t *testing.T) {
	trace := Trace{Interval: 10, Sent: []int64{1, 12, 0, 37}, Answered: make([]int64, 4)}
	for q, want := range map[float64]int64{0: 1, 0.5: 2, 0.99: 7, 1: 7} {
		if got := trace.Lateness(0, 100, q); got != want {
			t.Errorf("%g: %d, wanted %d", q, got, want)
		}
	}
	if got := trace.Lateness(50, 100, 0.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}

func TestTokenHash(t *testing.T) {
	token, other := NewToken(), NewToken()
	hash, err := ParseTokenHash(token.Hash().String())
	if err != nil || hash != token.Hash() {
		t.Fatalf("%v, %v", hash, err)
	}
	if !hash.Matches(token.datagram(nil, 7)) || hash.Matches(other.datagram(nil, 7)) || hash.Matches(token[:15]) {
		t.Error("another token matches the hash, or its own does not")
	}
	if n, is := token.number(token.datagram(nil, 7)); n != 7 || !is {
		t.Errorf("%d, %v", n, is)
	}
	if _, is := token.number(other.datagram(nil, 7)); is {
		t.Error("a response with another token counts")
	}
	if strings.Contains(hash.String(), hex.EncodeToString(token[:8])) {
		t.Error("the hash shows the token")
	}
}

func FuzzParseTokenHash(f *testing.F) {
	f.Add(NewToken().Hash().String())
	f.Add("00")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := ParseTokenHash(text); err == nil {
			if again, err := ParseTokenHash(l.String()); err != nil || again != l {
				t.Errorf("%q is read as %v", text, l)
			}
		}
	})
}

func FuzzNumber(f *testing.F) {
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		token := Token{1}
		if n, is := token.number(b); is && string(token.datagram(nil, n)) != string(b) {
			t.Errorf("%x is read as %d", b, n)
		}
		token.Hash().Matches(b)
	})
}
