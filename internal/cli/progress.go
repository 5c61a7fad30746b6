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

// A progress shows an experiment on stderr while it goes on.
type progress struct {
	event func(runner.Event)
	// board takes what there is after each block; nil where nothing shows that.
	board func(report.Input)
}

// newProgress returns what shows an experiment in one of the modes.
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
			height: cmp.Or(s.Height, usualHeight), last: map[string]string{}}
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

// watched is the rule by which cases of an experiment stop that shows the board what there is whenever it is asked.
func (p progress) watched(e result.Experiment, decide runner.Decide) runner.Decide {
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

// usualHeight is that of a terminal that does not tell.
const usualHeight = 24

// ttyProgress keeps a few lines on a terminal up to date: the matrix as far as it goes, where the experiment is, and
// the last values.
type ttyProgress struct {
	out           io.Writer
	colour        bool
	width, height int
	matrix        string            // lines; empty before there is one, or where it is too high for the terminal
	drawn         int               // lines above the cursor's, and the cursor's, that are to be erased; 0: none
	last          map[string]string // by target, of the case that is being measured
	names         []string
	study         string // that case
}

// fill takes the matrix after a block.
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

// widestTable is how wide a table gets on a wide terminal.
const widestTable = 200

func (p *ttyProgress) show(e runner.Event) {
	switch e.Kind {
	case runner.RunStarted:
		if e.Case != p.study {
			p.study, p.names, p.last = e.Case, nil, map[string]string{}
		}
	case runner.RunDone:
		p.note(e)
	case runner.RunInvalid:
		p.line(fmt.Sprintf("invalid: %s on %s, block %d: %s", e.Case, e.Target, e.Block, e.Reason))
	case runner.SiteFailed:
		p.line(noSite(e))
	case runner.SwitchStarted:
		p.study, p.names, p.last = switching(e), nil, map[string]string{}
	case runner.SwitchFailed, runner.RestoreStarted:
		p.line(switching(e))
	case runner.CaseDecided:
		p.line(decided(e))
	case runner.NotMeasured:
		p.line(fmt.Sprintf("not measured: %s on %s: %s", e.Case, e.Target, e.Reason))
	case runner.Finished:
		p.erase()
		return
	}
	p.draw(e)
}

func (p *ttyProgress) note(e runner.Event) {
	if _, seen := p.last[e.Target]; !seen {
		p.names = append(p.names, e.Target)
	}
	p.last[e.Target] = mainValue(e)
}

// line prints something that stays, above the lines that change.
func (p *ttyProgress) line(text string) {
	p.erase()
	fmt.Fprintln(p.out, text)
}

func (p *ttyProgress) erase() {
	if p.drawn > 0 {
		perform(p.out, eraseLines(p.drawn-1))
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
		prose.Cut(p.study+"  "+strings.Join(values, "  "), p.width-1))
	p.drawn = strings.Count(p.matrix, "\n") + 2
}

// most is what stands before a number that is the most that it can be.
func most(e runner.Event) string {
	if e.AtMost {
		return "at most "
	}
	return ""
}

// switching tells of a switch, or of the end of all of them.
func switching(e runner.Event) string {
	switch e.Kind {
	case runner.RestoreStarted:
		return "restoring the testbed: " + e.Reason
	case runner.SwitchFailed:
		return fmt.Sprintf("switch to %s failed, block %d: %s", e.Target, e.Block, e.Reason)
	}
	return fmt.Sprintf("visit %d of %s%d: switching to %s", e.Visit, most(e), e.Visits, e.Target)
}

func noSite(e runner.Event) string {
	return fmt.Sprintf("nothing to measure in on %s, block %d: %s", e.Target, e.Block, e.Reason)
}

func decided(e runner.Event) string {
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

// plainProgress writes a line with the time of day for each event that is worth one.
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
		text = switching(e)
	case runner.BlockStarted:
		text = fmt.Sprintf("block %d of %s%d: %d of %d runs done, %s elapsed, %s%s to go",
			e.Block, most(e), e.Blocks, e.Done, e.Runs, prose.Clock(e.Elapsed), most(e), prose.Clock(e.Remaining))
	case runner.RunInvalid:
		text = fmt.Sprintf("block %d  %s  %s  invalid: %s", e.Block, e.Case, e.Target, e.Reason)
	case runner.SiteFailed:
		text = noSite(e)
	case runner.CaseDecided:
		text = decided(e)
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
