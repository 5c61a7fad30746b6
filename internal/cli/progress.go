package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// progressModes are the values of --progress.
var progressModes = []string{"auto", "tty", "plain", "json", "none"}

// A progress shows the progress of an experiment on standard error.
type progress struct {
	event func(runner.Event)
	// board shows the results after each block; may be nil.
	board func(report.Input)
}

// newProgress returns the progress for a mode.
func newProgress(mode string, s Streams) (progress, error) {
	if mode == "auto" {
		mode = "plain"
		if s.Terminal {
			mode = "tty"
		}
	}
	switch mode {
	case "tty":
		p := &ttyProgress{out: s.Err, colour: s.Color, width: cmp.Or(s.Width, prose.Columns),
			height: cmp.Or(s.Height, defaultHeight), last: map[string]string{}}
		return progress{p.show, p.fill}, nil
	case "plain":
		return progress{event: (&plainProgress{out: s.Err, now: time.Now}).show}, nil
	case "json":
		lines := json.NewEncoder(s.Err)
		return progress{event: func(e runner.Event) { _ = lines.Encode(e) }}, nil
	case "none":
		return progress{event: func(runner.Event) {}}, nil
	}
	return progress{}, oneOf("--progress", mode, progressModes)
}

// withBoard returns the stopping rule decide, extended so that it also shows the results so far on the board.
func (p progress) withBoard(e result.Experiment, decide runner.Decide) runner.Decide {
	if p.board == nil {
		return decide
	}
	provisional := compare.Provisional(e)
	return func(e result.Experiment, done int, runs []result.Run) []string {
		going := decide(e, done, runs)
		p.board(report.Input{Experiment: e, Comparison: compare.Comparison{
			Paired: true, Baseline: e.Baseline, Alpha: e.Design.Alpha, Delta: e.Design.Delta,
			Comparisons: provisional(e, done, runs, going), NotMeasured: e.NotMeasured,
		}})
		return going
	}
}

// defaultHeight is the assumed height of a terminal that does not report it, in lines.
const defaultHeight = 24

// ttyProgress updates a few lines on a terminal: the matrix of results so far, the position in the experiment, and the
// last values.
type ttyProgress struct {
	out           io.Writer
	colour        bool
	width, height int
	matrix        string            // lines; empty at the beginning, or if it is too high for the terminal
	drawn         int               // lines to erase, including the cursor's; 0: none
	current       string            // case that is being measured, or the current switch
	last          map[string]string // last values of that case, by target
	names         []string          // targets with a value, in the order of their runs
}

// fill sets the matrix after a block.
func (p *ttyProgress) fill(in report.Input) {
	var b strings.Builder
	if report.Matrix(&b, in, report.TextOptions{Colour: p.colour, Width: min(p.width-1, widestTable)}) != nil {
		return
	}
	p.matrix = b.String()
	if strings.Count(p.matrix, "\n")+2 >= p.height {
		p.matrix = ""
	}
}

// widestTable is the largest width of a table on a wide terminal, in columns.
const widestTable = 200

func (p *ttyProgress) show(e runner.Event) {
	switch e.Kind {
	case runner.RunStarted:
		if e.Case != p.current {
			p.current, p.names, p.last = e.Case, nil, map[string]string{}
		}
	case runner.RunDone:
		p.recordValue(e)
	case runner.RunInvalid:
		p.line(fmt.Sprintf("invalid: %s on %s, block %d: %s", e.Case, e.Target, e.Block, e.Reason))
	case runner.SiteFailed:
		p.line(siteFailedText(e))
	case runner.SwitchStarted:
		p.current, p.names, p.last = switchText(e), nil, map[string]string{}
	case runner.SwitchFailed, runner.RestoreStarted:
		p.line(switchText(e))
	case runner.CaseDecided:
		p.line(decidedText(e))
	case runner.NotMeasured:
		p.line(fmt.Sprintf("not measured: %s on %s: %s", e.Case, e.Target, e.Reason))
	case runner.Finished:
		p.erase()
		return
	}
	p.draw(e)
}

func (p *ttyProgress) recordValue(e runner.Event) {
	if _, seen := p.last[e.Target]; !seen {
		p.names = append(p.names, e.Target)
	}
	p.last[e.Target] = mainValue(e)
}

// line prints a permanent line above the lines that are updated.
func (p *ttyProgress) line(text string) {
	p.erase()
	fmt.Fprintln(p.out, text)
}

func (p *ttyProgress) erase() {
	if p.drawn > 0 {
		writeSequence(p.out, eraseLines(p.drawn-1))
		p.drawn = 0
	}
}

func (p *ttyProgress) draw(e runner.Event) {
	var values []string
	for _, name := range p.names {
		values = append(values, name+" "+p.last[name])
	}
	most := ""
	if e.AtMost {
		most = "≤ "
	}
	what, at, all := "block", max(e.Block, 1), e.Blocks
	if e.Visits > 0 {
		what, at, all = "visit", e.Visit, e.Visits
	}
	first := fmt.Sprintf("%s %d of %s%d  %s %d/%d  %s elapsed, %s%s to go",
		what, at, most, all, bar(e.Done, e.Runs), e.Done, e.Runs, prose.Clock(e.Elapsed),
		most, prose.Clock(e.Remaining))
	p.erase()
	fmt.Fprint(coloured(p.out), p.matrix)
	fmt.Fprintf(p.out, "%s\n%s", prose.Cut(first, p.width-1),
		prose.Cut(p.current+"  "+strings.Join(values, "  "), p.width-1))
	p.drawn = strings.Count(p.matrix, "\n") + 2
}

// most returns the prefix of numbers that are upper limits.
func most(e runner.Event) string {
	if e.AtMost {
		return "at most "
	}
	return ""
}

// switchText describes an event of a switch or of the restoration.
func switchText(e runner.Event) string {
	switch e.Kind {
	case runner.RestoreStarted:
		return "restoring the testbed: " + e.Reason
	case runner.SwitchFailed:
		return fmt.Sprintf("switch to %s failed, block %d: %s", e.Target, e.Block, e.Reason)
	}
	return fmt.Sprintf("visit %d of %s%d: switching to %s", e.Visit, most(e), e.Visits, e.Target)
}

func siteFailedText(e runner.Event) string {
	return fmt.Sprintf("nothing to measure in on %s, block %d: %s", e.Target, e.Block, e.Reason)
}

func decidedText(e runner.Event) string {
	return fmt.Sprintf("decided: %s, after %d of at most %d blocks", e.Case, e.Block, e.Blocks)
}

func bar(done, all int) string {
	const cells = 20
	full := 0
	if all > 0 {
		full = min(cells, done*cells/all)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "]"
}

// plainProgress writes a line with the time of day for each important event.
type plainProgress struct {
	out io.Writer
	now func() time.Time
}

func (p *plainProgress) show(e runner.Event) {
	var text string
	switch e.Kind {
	case runner.Planned:
		text = fmt.Sprintf("%s%d blocks, %d runs, about %s", most(e), e.Blocks, e.Runs, prose.Clock(e.Remaining))
		if e.Visits > 0 {
			text += ", " + unit.Plural(e.Visits, "visit")
		}
	case runner.SwitchStarted, runner.SwitchFailed, runner.RestoreStarted:
		text = switchText(e)
	case runner.BlockStarted:
		text = fmt.Sprintf("block %d of %s%d: %d of %d runs done, %s elapsed, %s%s to go",
			e.Block, most(e), e.Blocks, e.Done, e.Runs, prose.Clock(e.Elapsed), most(e), prose.Clock(e.Remaining))
	case runner.RunInvalid:
		text = fmt.Sprintf("block %d  %s  %s  invalid: %s", e.Block, e.Case, e.Target, e.Reason)
	case runner.SiteFailed:
		text = siteFailedText(e)
	case runner.CaseDecided:
		text = decidedText(e)
	case runner.NotMeasured:
		text = fmt.Sprintf("not measured: %s on %s: %s", e.Case, e.Target, e.Reason)
	case runner.Finished:
		text = fmt.Sprintf("%s after %s", e.Reason, prose.Clock(e.Elapsed))
	default:
		return
	}
	fmt.Fprintf(p.out, "%s %s\n", p.now().Format(time.TimeOnly), text)
}

func mainValue(e runner.Event) string {
	if e.Value == nil {
		return "-"
	}
	return unit.Format(e.Value.Number, e.Value.Unit)
}
