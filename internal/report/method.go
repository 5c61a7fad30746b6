package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// method returns how the experiment was made, how to repeat it, how to read the report, and what it does not tell.
func method(in Input) doc.Block {
	c := in.Comparison
	b := doc.Block{ID: "method", Title: "Method", Level: doc.Detail, Count: "Method and command"}
	if list := design(in); len(list) > 0 {
		b.Parts = append(b.Parts, doc.Block{Level: doc.Data, Parts: []doc.Element{list}})
	}
	if again := command(in); len(again) > 0 {
		b.Parts = append(b.Parts, doc.Block{Title: "Repeat this experiment", Level: doc.Detail,
			Parts: []doc.Element{doc.Paragraph{Text: strings.Join(again, " "), Tone: doc.Code}}})
	}
	reading := doc.Block{Title: "How to read this report", Level: doc.Detail,
		Parts: []doc.Element{doc.Paragraph{Text: howToRead(c)}}}
	if c.Paired && len(c.Medians) == 0 {
		text := "Each block measures every target once, in random order, in a site made for the block. The change is the " +
			"Hodges-Lehmann estimate of the ratios of the blocks. Its interval comes from the exact distribution of the " +
			"signed-rank statistic and assumes no shape of the noise. "
		if len(in.Experiment.Design.Looks) > 0 {
			text += "The data are analysed after the planned numbers of blocks and at no other time. The intervals hold at " +
				"each of these looks, so an experiment may stop once it has decided. "
		}
		reading.Parts = append(reading.Parts, doc.Block{Level: doc.Data, Parts: []doc.Element{doc.Paragraph{Text: text +
			"There is no verdict “no difference”: either the difference is shown to be smaller than delta, or it is " +
			"undecided."}}})
	}
	limits := doc.Items{c.Scope}
	if slices.ContainsFunc(in.Experiment.Targets, func(t result.Target) bool { return t.Spec.Kind == "lab" }) {
		limits = append(limits, "A lab target is a datapath of this machine's kernel between network namespaces. It is not "+
			"the product that uses such a datapath; there is no second machine and no wire, and both ends share one machine's "+
			"CPUs.")
	}
	if len(c.Medians) == 0 {
		limits = append(limits,
			"Whatever else differs between targets can be the cause, whether or not it is a recorded fact.")
	}
	limits = append(limits,
		"A closed loop waits for each response before it sends the next request, so a stall counts once.")
	b.Parts = append(b.Parts, reading, doc.Block{Title: "Limits", Level: doc.Detail, Parts: []doc.Element{limits}})
	return b
}

// design returns the parameters of the experiment.
func design(in Input) doc.Entries {
	e := in.Experiment
	if e.ID == "" {
		return nil
	}
	d := e.Design
	kind := d.Kind
	if d.Parallel {
		kind += ", the runs of a case in a block measured at the same time"
	}
	var list doc.Entries
	add := func(label, text string) {
		if text != "" {
			list = append(list, doc.Entry{Label: label, Text: text})
		}
	}
	add("Experiment", e.ID)
	add("Imported from", e.Imported)
	add("Design", kind)
	if d.Blocks > 0 {
		add("Blocks", strconv.Itoa(d.Blocks))
	}
	if len(d.Looks) > 0 {
		add("Looks after", strings.Join(integerTexts(d.Looks), ", ")+" blocks")
	}
	if d.Duration > 0 {
		add("Measured for", unit.Format(d.Duration, unit.Second)+" a run")
		add("Warm-up", unit.Format(d.Warmup, unit.Second))
	}
	add("Error probability (alpha)", fmt.Sprint(d.Alpha))
	add("Smallest difference that matters (delta)", fmt.Sprintf("%.3g %%", d.Delta*100))
	add("Seed", fmt.Sprint(e.Seed))
	add("Suite", e.Suite)
	add("Tool", e.Tool)
	add("Knotmeter", versions(in))
	if d.Budget > 0 {
		add("Budget", seconds(d.Budget).Round(time.Second).String())
	}
	for _, t := range e.Targets {
		if t.Name != t.Spec.Text {
			add("Target "+t.Name, t.Spec.Text)
		}
	}
	return list
}
