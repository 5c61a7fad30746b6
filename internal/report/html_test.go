package report_test

import (
	"os"
	"testing"

	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
)

func TestLook(t *testing.T) {
	in, err := reporttest.Network()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Formats() {
		w, _ := os.Create("/tmp/kmlook/" + f.File)
		if err := f.Write(w, in); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
}
