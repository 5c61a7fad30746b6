//go:build linux

package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/test/e2e"
)

// TestNewcomer follows the README: build the image, load it on the nodes, measure a network, a volume and the API
// server, read the reports, clean.
func TestNewcomer(t *testing.T) {
	testbed := newTestbed(t)
	e2e.NeedParts(t)
	s := newExperiment(t, testbed)
	s.alone = true
	if _, err := os.Stat(filepath.Join(filepath.Dir(s.program), "knotmeter-agent-linux-amd64")); err != nil {
		t.Skip("the agents are not next to the program, where make agents puts them")
	}
	for _, line := range [][]string{
		// With the tools that the image of the other tests has, which it replaces on the nodes.
		{"image", "build", "--out", "agent.tar", "--tools", "echo,cat,sleep,false,fio,openssl"},
		{"doctor", "--target", "kube:"},
		// One target, since the cluster has one zone, and few runs to keep the test short.
		{"run", "--share", "--target", "kube:", "--suite", "network:quick", "--blocks", "1", "--yes",
			"--out", "network"},
		{"run", "--share", "--target", "kube:?storage-class=loop-ext4&size=128Mi", "--case", "storage/randread-4k-qd64",
			"--blocks", "1", "--yes", "--out", "storage"},
		{"run", "--share", "--target", "kube:", "--case", "api/configmap/get", "--blocks", "1", "--out", "api"},
		{"report", "network"},
		{"clean", "--target", "kube:"},
	} {
		r := s.start(line...)
		if status := s.end(r); status != 0 {
			t.Fatalf("knotmeter %s: status %d\n%s", strings.Join(line, " "), status, r)
		}
		if line[0] == "image" {
			archive := filepath.Join(s.dir, "agent.tar")
			if out, err := e2e.Command(testbed.Kubeconfig, "load", archive).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	for dir, name := range map[string]string{"network": "pod-svc/other/tcp-rr", "storage": "storage/randread-4k-qd64",
		"api": "api/configmap/get"} {
		page, err := os.ReadFile(filepath.Join(s.dir, dir, "report.html"))
		if err != nil || !strings.Contains(string(page), name) {
			t.Errorf("the report on the %s has %d bytes: %v", dir, len(page), err)
		}
	}
	// The command of the README.
	out, err := e2e.Command(testbed.Kubeconfig, "kubectl", "get", "all,cm,pvc,rolebindings,ns", "-A", "-l",
		e2e.Managed, "-o", "name").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "" {
		t.Errorf("left: %s, %v", out, err)
	}
	s.nothingLeft()
}

// TestRestricted checks that everything works in a namespace with the Pod Security Standard restricted and with the
// rights that doctor prints, except for the paths of nodes, which are listed with the reason.
func TestRestricted(t *testing.T) {
	testbed := newTestbed(t)
	s := newExperiment(t, testbed)
	s.alone, s.options = true, "as=sailor&client-node=node-1&server-node=node-2"
	s.namespace = testbed.namespace(t, "restricted")
	s.applyRole()
	s.bindRole()
	for _, line := range [][]string{
		{"doctor", "--target", s.target()},
		{"run", "--share", "--target", s.target(), "--suite", "network:quick", "--case", "*/tcp-rr", "--duration", "300ms",
			"--blocks", "1", "--out", "results"},
		{"compare", "results"},
	} {
		r := s.start(line...)
		if status := s.end(r); status != 0 {
			t.Fatalf("knotmeter %s: status %d\n%s", strings.Join(line, " "), status, r)
		}
		if line[0] == "run" {
			s.nothingLeft()
		}
		if line[0] == "compare" {
			continue
		}
		says := []string{"node paths need", "refuses", "restricted"}
		if line[0] == "doctor" { // these need other rights
			says = append(says, "not storage: ", "not the API server, changes of a network: ",
				"lacks rights on serviceaccounts (create, ", "lacks rights on persistentvolumeclaims (create, ")
		}
		for _, words := range says {
			if !strings.Contains(strings.Join(strings.Fields(r.String()), " "), words) {
				t.Errorf("knotmeter %s does not say %q:\n%s", line[0], words, r)
			}
		}
	}
	s.nothingLeft()
}
