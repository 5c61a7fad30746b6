// Package action tests the GitHub action at the root of the repository: it runs the steps of action.yml with the real
// program, and a fake of GitHub's command gh.
package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/cli"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// programVariable is the environment variable that makes the test binary run as the program.
const programVariable = "KNOTMETER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(cli.Main(context.Background(), cli.StandardStreams(), "test", os.Args[1:]))
	}
	os.Exit(m.Run())
}

// An action holds those fields of action.yml that the tests read.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct{ Steps []actionStep }
}

type actionStep struct {
	Name, ID, If, Shell, Run, Uses string
	Env, With                      map[string]string
}

func readAction(t *testing.T) action {
	t.Helper()
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Runs.Steps) < 5 {
		t.Fatalf("only %d steps were found", len(a.Runs.Steps))
	}
	return a
}

// A job runs the steps of the action as a runner of GitHub does. It supports the expressions of expand and holds alone.
type job struct {
	action  action
	context map[string]string // values of the names in expressions
	dir     string            // working directory of the job
	github  string            // directory of the fake: files of GitHub, and the calls of gh
	path    []string          // directories that steps added to the search path
	log     bytes.Buffer
}

// newJob returns a job for a pull request, with inputs.
func newJob(t *testing.T, inputs map[string]string) *job {
	t.Helper()
	j := &job{action: readAction(t), dir: t.TempDir(), github: t.TempDir(), context: map[string]string{
		"github.token": "secret", "github.action_ref": "v1.2.3", "github.repository": "team/cni",
		"github.event_name": "pull_request", "github.event.pull_request.number": "17",
		"steps.report.outputs.upload": "", "runner.os": "Linux", "runner.arch": "X64", "runner.temp": t.TempDir(),
	}}
	for name, input := range j.action.Inputs {
		j.context["inputs."+name] = j.expand(t, input.Default)
	}
	for name, value := range inputs {
		if _, is := j.action.Inputs[name]; !is {
			t.Fatalf("the action has no input %s", name)
		}
		j.context["inputs."+name] = value
	}
	experiment, err := os.ReadFile("testdata/experiment.yaml")
	if err := errors.Join(err, os.WriteFile(filepath.Join(j.dir, "experiment.yaml"), experiment, 0o600),
		j.answer("comments", "[]"), j.answer("viewer", `{"data": {"viewer": {"login": "github-actions[bot]"}}}`),
		j.answer("tags", `[{"name": "v1.2.3", "commit": {"sha": "`+released+`"}}]`)); err != nil {
		t.Fatal(err)
	}
	return j
}

// released is the commit of the only release.
const released = "0123456789abcdef0123456789abcdef01234567"

// answer sets the JSON with which GitHub answers a request.
func (j *job) answer(request, text string) error {
	return os.WriteFile(filepath.Join(j.github, request), []byte(text), 0o600)
}

// program returns the path of the program, which is this test binary.
func program(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return own
}

var expression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)

// expand replaces expressions: a name, or names separated by ||, of which the first value that is not empty counts.
func (j *job) expand(t *testing.T, text string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(found string) string {
		for name := range strings.SplitSeq(expression.FindStringSubmatch(found)[1], "||") {
			value, is := j.context[strings.TrimSpace(name)]
			if !is {
				t.Fatalf("the action names %s, which this test does not know", name)
			}
			if value != "" {
				return value
			}
		}
		return ""
	})
}

var comparison = regexp.MustCompile(`^(\S+) (==|!=) '(.*)'$`)

// holds evaluates a condition: comparisons of names with strings, joined by &&.
func (j *job) holds(t *testing.T, condition string) bool {
	t.Helper()
	for part := range strings.SplitSeq(condition, "&&") {
		part = strings.TrimSpace(part)
		m := comparison.FindStringSubmatch(part)
		switch {
		case part == "" || part == "!cancelled()":
			continue
		case m == nil:
			t.Fatalf("the test does not support the condition %q", part)
		}
		value, is := j.context[m[1]]
		if !is {
			t.Fatalf("the test does not know the name in the condition %q", part)
		}
		if (value == m[3]) != (m[2] == "==") {
			return false
		}
	}
	return true
}

// run runs the steps, and returns the name of the first that failed; empty if none did.
func (j *job) run(t *testing.T) (failed string) {
	t.Helper()
	for _, s := range j.action.Runs.Steps {
		if failed != "" && !strings.Contains(s.If, "cancelled()") || !j.holds(t, s.If) {
			continue
		}
		if s.Run == "" {
			fmt.Fprintf(&j.log, "%s: %s\n", s.Name, j.expand(t, s.With["path"]))
			continue
		}
		if err := j.step(t, s); err != nil && failed == "" {
			failed = s.Name
			fmt.Fprintf(&j.log, "%s: %v\n", s.Name, err)
		}
	}
	return failed
}

// step runs a script as GitHub does with shell: bash.
func (j *job) step(t *testing.T, s actionStep) error {
	t.Helper()
	files := t.TempDir()
	script := filepath.Join(files, "script")
	if err := os.WriteFile(script, []byte(s.Run), 0o600); err != nil {
		t.Fatal(err)
	}
	fake, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	c.Dir, c.Stdout, c.Stderr = j.dir, &j.log, &j.log
	c.Env = append(os.Environ(), programVariable+"=1", "FAKE_GITHUB="+j.github,
		targets.ClaimsVariable+"="+j.github, "XDG_STATE_HOME="+j.github,
		"PATH="+strings.Join(append(slices.Clone(j.path), fake, os.Getenv("PATH")), ":"))
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} {
		c.Env = append(c.Env, name+"="+filepath.Join(files, name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		c.Env = append(c.Env, name+"="+j.expand(t, s.Env[name]))
	}
	err = c.Run()
	for _, line := range lines(t, filepath.Join(files, "GITHUB_OUTPUT")) {
		name, value, _ := strings.Cut(line, "=")
		j.context["steps."+s.ID+".outputs."+name] = value
	}
	j.path = append(lines(t, filepath.Join(files, "GITHUB_PATH")), j.path...)
	if summary := lines(t, filepath.Join(files, "GITHUB_STEP_SUMMARY")); len(summary) > 0 {
		j.context["summary"] = strings.Join(summary, "\n")
	}
	return err
}

// lines returns the lines of a file; none if it does not exist.
func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// TestAction runs an experiment in the lab by the steps of the action: the report is written to the summary and to a
// comment, which the next run replaces, and a failed gate fails the job.
func TestAction(t *testing.T) {
	t.Parallel()
	j := newJob(t, map[string]string{
		"experiment": "experiment.yaml", "program": program(t), "arguments": "--progress=none\n",
	})
	if failed := j.run(t); failed != "" || j.context["steps.run.outputs.status"] != "0" {
		t.Fatalf("%s failed:\n%s", failed, &j.log)
	}
	sent := strings.Join(lines(t, filepath.Join(j.github, "sent")), "\n")
	marker, commented, _ := strings.Cut(sent, "\n")
	if marker != "<!-- knotmeter: experiment.yaml -->" || !strings.Contains(commented, "node-node/") ||
		commented != j.context["summary"] {
		t.Errorf("commented:\n%s\nsummary:\n%s\nlog:\n%s", sent, j.context["summary"], &j.log)
	}
	if !strings.Contains(j.log.String(), "Upload: knotmeter-results/report.*\n") {
		t.Errorf("the report is not uploaded:\n%s", &j.log)
	}
	wantCall(t, j, "--method POST repos/team/cni/issues/17/comments --field body=@")

	// The next run finds its comment among those with the same marker, and its gate fails.
	if err := j.answer("comments", `[
		{"id": 4, "user": {"login": "github-actions[bot]"}, "body": "another"},
		{"id": 77, "user": {"login": "github-actions[bot]"}, "body": "<!-- knotmeter: experiment.yaml -->\nearlier"},
		{"id": 99, "user": {"login": "mallory"}, "body": "<!-- knotmeter: experiment.yaml -->\nmine"}]`); err != nil {
		t.Fatal(err)
	}
	j.context["inputs.results"], j.context["inputs.node-names"] = "second", "true"
	j.context["inputs.arguments"] = "--progress=none\n\n--gate=node-node/* p50 <= 1ns"
	if failed := j.run(t); failed != "Conclude" || j.context["steps.run.outputs.status"] != "3" {
		t.Fatalf("failed: %q, status %s:\n%s", failed, j.context["steps.run.outputs.status"], &j.log)
	}
	wantCall(t, j, "--method PATCH repos/team/cni/issues/comments/77 --field body=@")
	if !strings.HasSuffix(j.log.String(), "Upload: second\nConclude: exit status 3\n") {
		t.Errorf("the results are not uploaded:\n%s", &j.log)
	}
}

// TestActionPublishes checks that names of nodes and addresses are published if the job asks for them only, and that
// names mention no one.
func TestActionPublishes(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"false", "true"} {
		j := newJob(t, map[string]string{
			"experiment": "experiment.yaml", "program": program(t), "results": "results", "node-names": names,
			"arguments": "--progress=none\n--blocks=1\n--target=lab:native?label=@team/all #1",
		})
		run := j.action.Runs.Steps[j.index(t, "Run")]
		if err := j.step(t, run); err != nil {
			t.Fatalf("%v:\n%s", err, &j.log)
		}
		runs := filepath.Join(j.dir, "results/runs.ndjson")
		text, err := os.ReadFile(runs)
		if err != nil {
			t.Fatal(err)
		}
		ends := regexp.MustCompile(`("name":"(?:client|server)","value":")[^"]*`)
		text = ends.ReplaceAll(text, []byte("${1}gke-secret-1a2b"))
		plan := filepath.Join(j.dir, "results/experiment.json")
		planned, err := os.ReadFile(plan)
		planned = bytes.Replace(planned, []byte(`"not_measured": []`), []byte(`"not_measured": [],
			"warnings": [{"code": "target-reports", "text": "gke-secret-1a2b at 10.1.2.3 is busy"}]`), 1)
		if err := errors.Join(err, os.WriteFile(runs, text, 0o600), os.WriteFile(plan, planned, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := j.step(t, j.action.Runs.Steps[j.index(t, "Report")]); err != nil {
			t.Fatalf("%v:\n%s", err, &j.log)
		}
		page, err := os.ReadFile(filepath.Join(j.dir, "results/report.html"))
		if err != nil || strings.Contains(string(page), "gke-secret-1a2b") != (names == "true") {
			t.Errorf("node-names %s: the page has %d bytes, %v", names, len(page), err)
		}
		summary, _, _ := strings.Cut(j.context["summary"], "```sh") // code mentions no one
		if strings.Contains(summary, "@team") || strings.Contains(summary, "#1") ||
			!strings.Contains(summary, "@&#8203;team/all #&#8203;1") {
			t.Errorf("the summary mentions a team or an issue:\n%s", summary)
		}
		for _, name := range []string{"gke-secret-1a2b", "10.1.2.3"} {
			if strings.Contains(summary, name) != (names == "true") {
				t.Errorf("node-names %s, but the summary has %s or not:\n%s", names, name, summary)
			}
		}
	}
}

// index returns the index of a step.
func (j *job) index(t *testing.T, name string) int {
	t.Helper()
	i := slices.IndexFunc(j.action.Runs.Steps, func(s actionStep) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no step %s", name)
	}
	return i
}

// wantCall checks that the last call of gh contains want.
func wantCall(t *testing.T, j *job, want string) {
	t.Helper()
	calls := lines(t, filepath.Join(j.github, "calls"))
	if len(calls) == 0 || !strings.Contains(calls[len(calls)-1], want) {
		t.Errorf("the last call of gh is not %s:\n%s", want, strings.Join(calls, "\n"))
	}
}

// TestActionHostile gives inputs that would run commands if a script contained their text.
func TestActionHostile(t *testing.T) {
	t.Parallel()
	const attack = `"; touch pwned; $(touch pwned) ` + "`touch pwned` '"
	j := newJob(t, map[string]string{
		"experiment": attack, "results": "results " + attack, "arguments": "--progress=none\n--seed=" + attack,
		"program": program(t), "artifact": attack, "version": attack, "fail-on": "none",
	})
	if failed := j.run(t); failed != "Conclude" || j.context["steps.run.outputs.status"] != "1" {
		t.Errorf("failed: %q, status %s:\n%s", failed, j.context["steps.run.outputs.status"], &j.log)
	}
	j.context["inputs.program"] = ""
	if failed := j.run(t); failed != "Install" {
		t.Errorf("failed: %q:\n%s", failed, &j.log)
	}
	j.context["inputs.fail-on"], j.context["inputs.program"] = attack, "knotmeter"
	if failed := j.run(t); failed != "Run" {
		t.Errorf("failed: %q:\n%s", failed, &j.log)
	}
	if found, err := filepath.Glob(filepath.Join(j.dir, "*pwned*")); err != nil || len(found) > 0 {
		t.Errorf("a command of an input was run: %q, %v", found, err)
	}
	for _, s := range j.action.Runs.Steps {
		if expression.MatchString(s.Run) {
			t.Errorf("the script of %s has an expression in it, which could rewrite it", s.Name)
		}
	}
}

// TestActionConclusion checks which exit status fails the job.
func TestActionConclusion(t *testing.T) {
	t.Parallel()
	j := newJob(t, nil)
	conclude := j.action.Runs.Steps[j.index(t, "Conclude")]
	for _, c := range []struct{ failOn, pass string }{
		{"undecided", "0"}, {"failed", "0 4"}, {"none", "0 3 4"},
	} {
		for _, status := range []string{"0", "1", "2", "3", "4", "130"} {
			j.context["inputs.fail-on"], j.context["steps.run.outputs.status"] = c.failOn, status
			err := j.step(t, conclude)
			if want := slices.Contains(strings.Fields(c.pass), status); want != (err == nil) {
				t.Errorf("fail-on %s, status %s: %v", c.failOn, status, err)
			}
		}
	}
}

// TestActionComment checks that a comment that GitHub refuses causes a warning, pushes get no comment, and a long
// report is cut.
func TestActionComment(t *testing.T) {
	t.Parallel()
	j := newJob(t, map[string]string{"experiment": "experiment.yaml", "results": "results"})
	comment := j.action.Runs.Steps[j.index(t, "Comment")]
	report, refuses := filepath.Join(j.dir, "results/report.md"), filepath.Join(j.github, "refuses")
	if err := errors.Join(os.Mkdir(filepath.Dir(report), 0o700), os.WriteFile(refuses, nil, 0o600),
		os.WriteFile(report, bytes.Repeat([]byte("a line of a long report\n"), 4000), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := j.step(t, comment); err != nil || !strings.Contains(j.log.String(), "::warning::The report could not") {
		t.Errorf("%v:\n%s", err, &j.log)
	}
	if err := os.Remove(refuses); err != nil {
		t.Fatal(err)
	}
	if err := j.step(t, comment); err != nil {
		t.Errorf("%v:\n%s", err, &j.log)
	}
	sent, err := os.ReadFile(filepath.Join(j.github, "sent"))
	if most := 65536; err != nil || len(sent) > most || !strings.HasSuffix(string(sent), "is in the artifact.\n") {
		t.Errorf("sent %d bytes, %v", len(sent), err)
	}
	j.context["github.event_name"] = "push"
	if j.holds(t, comment.If) {
		t.Error("pushes are commented")
	}
}

// TestActionInstall installs the program from a release with a matching checksum, and from no other.
func TestActionInstall(t *testing.T) {
	t.Parallel()
	j := newJob(t, nil)
	release := filepath.Join(j.github, "release")
	pack := `mkdir -p top "$1"; printf '#!/bin/sh\necho from the release\n' > top/knotmeter; chmod +x top/knotmeter
		tar -czf "$1/knotmeter_v1.2.3_linux_amd64.tar.gz" top
		cd "$1"; sha256sum knotmeter_* > SHA256SUMS
		echo "$(printf %064d 0)  knotmeter_v1.2.3_darwin_arm64.tar.gz" >> SHA256SUMS`
	c := exec.Command("bash", "-ec", pack, "pack", release)
	c.Dir = t.TempDir()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	install := j.action.Runs.Steps[0]
	if err := j.step(t, install); err != nil {
		t.Fatalf("%v:\n%s", err, &j.log)
	}
	wantCall(t, j, "release download v1.2.3 --repo knotmeter/knotmeter --dir ")
	err := j.step(t, actionStep{Run: "knotmeter"})
	if err != nil || !strings.Contains(j.log.String(), "from the release") {
		t.Errorf("%v:\n%s", err, &j.log)
	}
	j.context["github.action_ref"] = released
	if err := j.step(t, install); err != nil {
		t.Errorf("pinned by its commit: %v:\n%s", err, &j.log)
	}
	wantCall(t, j, "release download v1.2.3 --repo knotmeter/knotmeter --dir ")
	j.context["github.action_ref"] = strings.Repeat("f", 40)
	if err := j.step(t, install); err == nil ||
		!strings.Contains(j.log.String(), "::error::No release of Knotmeter is of the commit ffff") {
		t.Errorf("pinned by another commit: %v:\n%s", err, &j.log)
	}
	j.context["github.action_ref"] = "v1.2.3"
	archive := filepath.Join(release, "knotmeter_v1.2.3_linux_amd64.tar.gz")
	if err := os.WriteFile(archive, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.step(t, install); err == nil {
		t.Errorf("an archive with another checksum was installed:\n%s", &j.log)
	}
	j.context["runner.os"] = "Windows"
	if err := j.step(t, install); err == nil || !strings.Contains(j.log.String(), "no release for Windows-X64") {
		t.Errorf("%v:\n%s", err, &j.log)
	}
}

var inputRow = regexp.MustCompile("(?m)^\\| `(.+?)` \\| `?(.*?)`? \\|")

// TestActionPage checks that the page on the action lists its inputs with their defaults, and its example uses no
// others.
func TestActionPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/github-action.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, m := range inputRow.FindAllStringSubmatch(string(text), -1) {
		shown[m[1]] = m[2]
	}
	inputs := readAction(t).Inputs
	for name, input := range inputs {
		page, is := shown[name]
		described := slices.Contains([]string{"none", "required", "the action's own", "the job's"}, page)
		if !is || !described && page != input.Default || described && input.Default != "" && name != "token" {
			t.Errorf("input %s has the default %q, and on the page %q", name, input.Default, page)
		}
	}
	if len(shown) != len(inputs) {
		t.Errorf("the page has %d inputs, the action %d", len(shown), len(inputs))
	}
	_, example, _ := strings.Cut(string(text), "        with:\n")
	example, _, _ = strings.Cut(example, "```")
	var with map[string]any
	if err := yaml.Unmarshal([]byte(example), &with); err != nil || len(with) == 0 {
		t.Fatalf("%v: %s", err, example)
	}
	for name := range with {
		if _, is := inputs[name]; !is {
			t.Errorf("the example sets %s, which is no input", name)
		}
	}
}

// TestActionShell checks the scripts with shellcheck.
func TestActionShell(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("there is no shellcheck here")
	}
	for _, s := range readAction(t).Runs.Steps {
		if s.Run == "" {
			continue
		}
		if s.Shell != "bash" {
			t.Errorf("%s is run by %q", s.Name, s.Shell)
		}
		c := exec.Command("shellcheck", "--shell=bash", "-")
		c.Stdin = strings.NewReader("#!/bin/bash -e\n" + s.Run)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", s.Name, err, out)
		}
	}
}
