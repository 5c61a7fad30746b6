package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// TestAccuracyConfigurationsInTurn checks that a switch that makes a server answer 5 % later gives a difference, and
// one that changes nothing does not.
func TestAccuracyConfigurationsInTurn(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "place")
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived := time.Now()
		text, err := os.ReadFile(place)
		takes, wrong := time.ParseDuration(strings.TrimSpace(string(text)))
		if err != nil || wrong != nil {
			t.Errorf("%v, %v", err, wrong)
		}
		time.Sleep(takes - time.Since(arrived))
	}))
	defer server.Close()
	file := `{apiVersion: knotmeter/v1, kind: Experiment, suite: app:shop.yaml, blocks: 10, duration: 500ms,
warmup: 100ms, restore: echo 1ms > place, targets: [
  {target: "local:?label=a", switch: echo 20ms > place},
  {target: "local:?label=slow", switch: echo 21ms > place},
  {target: "local:?label=same", switch: echo 20ms > place}]}`
	shop := fmt.Sprintf("url: %s\nloads: [clients=1]\nrequests:\n- {name: read, path: /}\n", server.URL)
	for name, text := range map[string]string{"experiment.yaml": file, "shop.yaml": shop} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	status, out := execute(t, "run", "-f", "experiment.yaml", "--out", "out", "--progress", "none", "-o", "markdown")
	if text, err := os.ReadFile(place); status != statusDone || err != nil || string(text) != "1ms\n" {
		t.Fatalf("status %d, %q is in place, %v\n%s", status, text, err, out)
	}
	_, out = execute(t, "compare", "out", "-o", "json")
	var c compare.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := c.Primary()
	if len(rows) != 2 {
		t.Fatalf("%d comparisons", len(rows))
	}
	for _, row := range rows {
		found := row.Verdict == compare.Different && row.Direction == compare.WorseThan
		if found != (row.Target == "slow") || row.Verdict == compare.Different && !found {
			t.Errorf("%s: %s", row.Target, row.Sentence)
		}
	}
}
