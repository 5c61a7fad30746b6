package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// compile returns a program for Linux, from the text of a main package or from the path of one.
func compile(t *testing.T, arch, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	if source == "" {
		source = "package main\nfunc main() {}\n"
	}
	at := source
	if strings.HasPrefix(source, "package") {
		at = filepath.Join(dir, "main.go")
		if err := os.WriteFile(at, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "program"), at)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("no program can be built here: %v %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCheckAgent(t *testing.T) {
	if err := checkAgent([]byte("#!/bin/sh"), "amd64"); err == nil ||
		!strings.Contains(err.Error(), "no program for Linux") {
		t.Error(err)
	}
	static := compile(t, "arm64", "")
	if err := checkAgent(static, "arm64"); err != nil {
		t.Error(err)
	}
	if err := checkAgent(static, "amd64"); err == nil || !strings.Contains(err.Error(), "not for amd64") {
		t.Error(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the other case takes a program of a Linux machine")
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip("this machine has no /bin/sh")
	}
	if err := checkAgent(shell, runtime.GOARCH); err == nil || !strings.Contains(err.Error(), "shared libraries") {
		t.Error(err)
	}
}

// TestFindAgent checks that the agent is found next to the program, and that the program itself is used if there is
// none.
func TestFindAgent(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "knotmeter")
	whole, small := compile(t, "amd64", ""), compile(t, "arm64", "")
	put := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("knotmeter", whole)
	if text, err := findAgent(own, "amd64"); err != nil || string(text) != string(whole) {
		t.Errorf("the program itself: %d bytes, %v", len(text), err)
	}
	if _, err := findAgent(own, "arm64"); err == nil ||
		!strings.Contains(err.Error(), "there is no agent for linux/arm64") {
		t.Error(err)
	}
	put(AgentFile("arm64"), small)
	if text, err := findAgent(own, "arm64"); err != nil || string(text) != string(small) {
		t.Errorf("beside it: %d bytes, %v", len(text), err)
	}
	put(AgentFile("amd64"), small)
	if _, err := findAgent(own, "amd64"); err == nil || !strings.Contains(err.Error(), "not for amd64") {
		t.Errorf("a wrong one beside it: %v", err)
	}
	if text, err := AgentFrom(filepath.Join(dir, AgentFile("arm64")), "arm64"); err != nil || len(text) != len(small) {
		t.Errorf("from a file: %d bytes, %v", len(text), err)
	}
	if _, err := AgentFrom(filepath.Join(dir, "none"), "arm64"); err == nil {
		t.Error("read from no file")
	}
}

// TestAgentIsSmall checks the size of the agent's program, which is copied into every pod that it is injected into.
func TestAgentIsSmall(t *testing.T) {
	const most = 10e6
	if size := len(compile(t, "amd64", "github.com/knotmeter/knotmeter/cmd/knotmeter-agent")); size >= most {
		t.Errorf("the agent has %.1f MB", float64(size)/1e6)
	} else {
		t.Logf("the agent has %.2f MB", float64(size)/1e6)
	}
}
