package cli

import (
	"errors"
	"reflect"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestRefusals checks that each reason is reported once, with everything that it applies to; other errors are marked.
func TestRefusals(t *testing.T) {
	var r refusals
	r.add("storage", result.NotSupported("there is no disk"))
	r.add("node-node", errors.New("the line is cut"))
	r.add("the API server", result.NotSupported("there is no disk"))
	want := refusals{
		{What: []string{"storage", "the API server"}, Reason: "there is no disk"},
		{What: []string{"node-node"}, Reason: "could not tell: the line is cut"},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("%+v", r)
	}
}
