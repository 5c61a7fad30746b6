package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/plan"
)

// TestConsent checks that a user on a terminal is asked once for all concerns, and that without a terminal the error
// lists them and names --yes.
func TestConsent(t *testing.T) {
	list := []plan.Concern{concern("a", "it is heavy"), concern("b", "it is secret")}
	for answer, agreed := range map[string]bool{
		"y\n": true, " YES \n": true, "\n": false, "n\n": false, "": false, "yess\n": false,
	} {
		var output strings.Builder
		yes := false
		s := Streams{In: strings.NewReader(answer), Err: &output, Interactive: true}
		err := consent(t.Context(), s, list, &yes)
		if yes != agreed || (err == nil) != agreed {
			t.Errorf("%q: yes is %t, %v", answer, yes, err)
		}
		if !strings.Contains(output.String(), "a: it is heavy\n  b: it is secret\nContinue? [y/N] ") {
			t.Errorf("asked: %s", &output)
		}
		if err := consent(t.Context(), Streams{}, list, &yes); (err == nil) != agreed {
			t.Errorf("%q: asked again: %v", answer, err)
		}
	}
	if err := consent(t.Context(), Streams{}, nil, new(bool)); err != nil {
		t.Error(err)
	}
	err := consent(t.Context(), Streams{In: strings.NewReader("y\n")}, list, new(bool))
	if err == nil || !strings.Contains(err.Error(), "add --yes if you agree to this:\na: it is heavy\nb: it is secret") {
		t.Errorf("without a terminal: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, end := io.Pipe()
	defer end.Close()
	err = consent(ctx, Streams{In: silent, Err: io.Discard, Interactive: true}, list, new(bool))
	if status, is := errors.AsType[*statusError](err); !is || status.status != statusInterrupted {
		t.Errorf("interrupted while it asks: %v", err)
	}
}
