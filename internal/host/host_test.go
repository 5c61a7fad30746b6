package host

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestCmdString(t *testing.T) {
	for want, args := range map[string][]string{
		"iperf3 -c 10.0.0.1 -p 5201":  {"iperf3", "-c", "10.0.0.1", "-p", "5201"},
		"echo ''":                     {"echo", ""},
		"echo 'a b' 'c*'":             {"echo", "a b", "c*"},
		`echo 'it'\''s'`:              {"echo", "it's"},
		"env A=1 x=y":                 {"env", "A=1", "x=y"},
		"'A=1' x=y":                   {"A=1", "x=y"},
		"echo '$HOME' '`id`' '~' '#'": {"echo", "$HOME", "`id`", "~", "#"},
		"":                            {},
	} {
		if got := (Cmd{Args: args}).String(); got != want {
			t.Errorf("%q is written %s, wanted %s", args, got, want)
		}
	}
}

// FuzzCmdString checks that a shell reads the printed command as the same words.
func FuzzCmdString(f *testing.F) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("this machine has no sh")
	}
	for _, word := range []string{"plain", "", "it's", "a b", "$HOME", "`id`", `\`, "\"", "*",
		"~", "#", "!", "a=b", "\n", "\t", "\r", "{a,b}", "^", "%", "-n", "µ", "\x01", "\xff"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.ContainsRune(word, 0) {
			return // an argument of a program cannot contain it
		}
		line := Cmd{Args: []string{"printf", "%s,", word, "end"}}.String()
		got, err := exec.Command(sh, "-c", line).Output()
		if err != nil || string(got) != word+",end," {
			t.Errorf("%q is written %s, which sh reads as %q, %v", word, line, got, err)
		}
	})
}

// TestFirstWord checks that a shell does not take the first word for an assignment or a keyword.
func TestFirstWord(t *testing.T) {
	for _, word := range []string{"A=1", "if", "{"} {
		line := Cmd{Args: []string{word}}.String()
		out, err := exec.Command("sh", "-c", line).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 127 {
			t.Errorf("%q is written %s, and sh does not look for a program of that name: %v %s", word, line, err, out)
		}
	}
}

func TestExitError(t *testing.T) {
	err := &ExitError{Command: "iperf3 -c 'a b'", Host: "node1", Status: 1, Stderr: "cannot connect\n"}
	if got, want := err.Error(), "on node1: iperf3 -c 'a b': exit status 1: cannot connect"; got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
	err.Stderr, err.Status = "", -1
	if got, want := err.Error(), "on node1: iperf3 -c 'a b': ended by a signal"; got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
}

func TestNoCommand(t *testing.T) {
	err := fmt.Errorf("on node1: iperf3: %w", ErrNoCommand)
	if !errors.Is(err, ErrNoCommand) || errors.Is(errors.New("no such program on this host"), ErrNoCommand) {
		t.Errorf("%v", err)
	}
}

func ExampleCmd_String() {
	fmt.Println(Cmd{Args: []string{"iperf3", "-c", "10.0.0.1", "--title", "one run"}})
	// Output: iperf3 -c 10.0.0.1 --title 'one run'
}
