package cli

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

// silences are commands that wait for what never comes, or compute for seconds, by what they wait for.
var silences = map[string][]string{
	"a FIFO": {
		"plan -f FIFO", "run -f FIFO", "plan local:/tmp --suite storage:FIFO", "audit FIFO", "import csv FIFO --out OUT",
		"image build --agent FIFO --out OUT", "image push --agent FIFO localhost:1/agent",
		"clean kube:?kubeconfig=FIFO", "doctor kube:?kubeconfig=FIFO", "plan kube:?kubeconfig=FIFO",
		"run kube:?kubeconfig=FIFO --yes --out OUT",
		"clean kube:?config=FIFO", "doctor kube:?config=FIFO", "doctor kube:?config=FIFO --rbac",
		"plan kube:?config=FIFO", "run kube:?config=FIFO --out OUT",
	},
	"standard input": {
		"plan -f /dev/stdin", "run -f /dev/stdin", "audit /dev/stdin", "import csv /dev/stdin --out OUT",
	},
	"a server": {
		"clean kube:silent", "doctor kube:silent", "plan kube:silent kube:silent?label=b",
		"run kube:silent kube:silent?label=b --yes --out OUT", "run --resume received --yes",
		"explain received --confirm --yes", "image push --insecure SERVER/agent:1 --agent AGENT",
	},
	"the kubeconfig's program": {
		"clean kube:program", "doctor kube:program", "plan kube:program", "run kube:program --yes --out OUT",
		"run kube:program?vantage=here --suite api --yes --out OUT",
	},
	"the CPU": {
		"compare MANY", "report MANY --out OUT", "explain LARGE", "audit MANY", "plan lab:native lab:vxlan --from LARGE",
	},
	"a lab": {"selftest", "doctor"},
}

// prompt are the commands that wait for nothing.
var prompt = []string{"list", "version", "help", "completion"}

// TestSilencesHaveAllCommands checks that TestStressSilence has each command, or that it is listed as prompt.
func TestSilencesHaveAllCommands(t *testing.T) {
	var listed []string
	for _, commands := range silences {
		listed = append(listed, commands...)
	}
	for _, name := range commandPaths(newRoot(Streams{}, "test")) {
		waits := slices.ContainsFunc(listed, func(command string) bool { return strings.HasPrefix(command, name+" ") })
		if !waits && !slices.Contains(listed, name) && !slices.Contains(prompt, name) {
			t.Errorf("%s is not listed; let it wait for something, or list it as prompt", name)
		}
	}
}

// TestStressSilence starts each command where it waits for what never comes, sends it one signal, and checks that it
// ends soon as interrupted, and leaves nothing. How soon depends on what else the machine does.
func TestStressSilence(t *testing.T) {
	number := 0
	for of, commands := range silences {
		for _, command := range commands {
			signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[number%2]
			number++
			t.Run(strings.ReplaceAll(command, "/", "|")+" waits for "+of, func(t *testing.T) {
				s := newSilence(t, command)
				s.launch(t)
				deadline := time.Now().Add(timeout)
				for ; !s.waits[of](); time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("it does not wait\n%s", &s.output)
					}
				}
				s.end(t, signal)
			})
		}
	}
}

// commandPaths returns the names of all commands without subcommands.
func commandPaths(c *cobra.Command) (paths []string) {
	for _, sub := range c.Commands() {
		paths = append(paths, commandPaths(sub)...)
	}
	if !c.HasSubCommands() {
		paths = append(paths, strings.TrimPrefix(c.CommandPath(), ownName+" "))
	}
	return paths
}

// A silence is the program in a directory with what it waits for.
type silence struct {
	*process
	waits map[string]func() bool // reports whether the program waits, by what it waits for
}

func newSilence(t *testing.T, command string) *silence {
	t.Helper()
	s := &silence{process: prepare(t)}
	t.Chdir(s.Dir)
	asked, server := silentServer(t)
	writeHostile(t, "received")
	for name, text := range map[string]string{
		"kubeconfig": `{apiVersion: v1, kind: Config, current-context: silent,
  contexts: [{name: silent, context: {cluster: silent, user: u}}, {name: program, context: {cluster: silent, user: p}}],
  users: [{name: u, user: {token: x}}, {name: p, user: {exec: {apiVersion: client.authentication.k8s.io/v1,
    command: sh, args: [-c, "touch started; exec sleep 60 2>/dev/null"], interactiveMode: Never}}}],
  clusters: [{name: silent, cluster: {insecure-skip-tls-verify: true, server: "` + server + `"}}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	input, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		write.Close()
	})
	s.Stdin = input
	read := make(chan struct{})
	go func() { // it ends when the program has begun to read, because no pipe holds as much
		defer close(read)
		_, _ = write.Write(make([]byte, 1<<20))
	}()
	words := []string{"FIFO", "fifo", "OUT", "out", "SERVER", strings.TrimPrefix(server, "https://"), "AGENT", "agent"}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	agent, err := binary.Append(nil, binary.LittleEndian, elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine),
		Version: uint32(elf.EV_CURRENT), Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64),
			byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}})
	if err := errors.Join(err, os.WriteFile("agent", agent, 0o600)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(command, "MANY") || strings.Contains(command, "LARGE") {
		large, many := writeMany(t)
		words = append(words, "MANY", many, "LARGE", large)
	}
	s.Args = append(s.Args, strings.Fields(strings.NewReplacer(words...).Replace(command))...)
	s.Env = append(s.Env, "KUBECONFIG="+filepath.Join(s.Dir, "kubeconfig"))
	s.waits = map[string]func() bool{
		"a FIFO": func() bool {
			// Open fails until the FIFO is opened for reading.
			fd, err := unix.Open("fifo", unix.O_WRONLY|unix.O_NONBLOCK, 0)
			if err == nil {
				t.Cleanup(func() { unix.Close(fd) })
			}
			return err == nil
		},
		"standard input": func() bool {
			select {
			case <-read:
				return true
			default:
				return false
			}
		},
		"a server": func() bool { return len(asked) > 0 },
		"the kubeconfig's program": func() bool {
			_, err := os.Stat("started")
			return err == nil
		},
		"the CPU": func() bool { return s.cpuTime(t) > 300*time.Millisecond },
		"a lab":   func() bool { return len(s.processes(t)) > 1 },
	}
	return s
}

// silentServer returns a server that completes TLS and answers no request, and the requests that it received.
func silentServer(t *testing.T) (asked chan string, address string) {
	t.Helper()
	asked = make(chan string, 1000)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-r.Context().Done()
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return asked, server.URL
}

// writeMany writes a large results directory, and two hundred smaller ones, and returns their names.
func writeMany(t *testing.T) (large, many string) {
	t.Helper()
	r, err := store.Open("received")
	if err != nil {
		t.Fatal(err)
	}
	few := r.Experiment.Design.Blocks
	r.Experiment.Design.Blocks = 50_000
	if err := store.WriteWhole(t.Context(), "large", r.Experiment, r.Facts,
		func(yield func(result.Run, []result.File) bool) {
			for first := 0; first < r.Experiment.Design.Blocks; first += few {
				for _, run := range r.Runs {
					run.Block += first
					run.ID = fmt.Sprintf("%s-%d", run.Target, run.Block)
					if !yield(run, nil) {
						return
					}
				}
			}
		}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 200 {
		name := "received" + strconv.Itoa(i)
		if err := os.CopyFS(name, os.DirFS("received")); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return "large", strings.Join(names, " ")
}

// cpuTime returns the CPU time that the program has used.
func (s *silence) cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	clock := ^s.Process.Pid<<3 | 2 // as clock_getcpuclockid(3) returns it
	if err := unix.ClockGettime(int32(clock), &used); err != nil {
		t.Fatalf("%v\n%s", err, &s.output)
	}
	return time.Duration(used.Nano())
}

// end sends the program a signal, and checks how it ends and what it leaves.
func (s *silence) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	const soon = 3 * time.Second
	if err := s.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	kill := time.AfterFunc(timeout, func() { _ = s.Process.Kill() })
	s.mustExit(t, statusInterrupted)
	kill.Stop()
	if took := time.Since(sent); took > soon {
		t.Errorf("it ended %v after %v", took, signal)
	}
	if !strings.Contains(s.output.String(), "interrupted") {
		t.Errorf("it does not say that it was interrupted:\n%s", &s.output)
	}
	if left := slices.Concat(entries(t, s.temp), entries(t, "out")); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}
