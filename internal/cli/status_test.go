package cli

import (
	"errors"
	"testing"
)

// TestWorstError checks that the most important status wins, and that an error without a status counts as failed runs.
func TestWorstError(t *testing.T) {
	open := &statusError{statusGateOpen, errors.New("open")}
	interrupted := &statusError{statusInterrupted, errors.New("^C")}
	for _, test := range []struct {
		errs []error
		want int
	}{
		{[]error{nil, errors.New("unreadable")}, statusRunFailed},
		{[]error{open, errors.New("unreadable")}, statusRunFailed},
		{[]error{open, nil}, statusGateOpen},
		{[]error{open, interrupted, errors.New("unreadable")}, statusInterrupted},
		{[]error{&statusError{99, errors.New("unknown")}}, statusRunFailed},
	} {
		if e, ok := errors.AsType[*statusError](worstError(test.errs...)); !ok || e.status != test.want {
			t.Errorf("%v: %v, want status %d", test.errs, e, test.want)
		}
	}
	if err := worstError(nil, nil); err != nil {
		t.Error(err)
	}
}
