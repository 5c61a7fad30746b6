package plan

import (
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Schema of a [Document].
const Schema = "knotmeter/plan/v1"

// A Concern is something that needs consent (--yes) before it is done: other users may feel it, or it gives something
// away.
type Concern struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (c Concern) String() string { return c.What + ": " + c.Why }

// A Document is all that is known before an experiment, and knotmeter/plan/v1 as JSON.
type Document struct {
	Schema     string            `json:"schema"`
	Experiment result.Experiment `json:"experiment"`
	Runs       int               `json:"runs"`             // at most
	Seconds    float64           `json:"seconds"`          // at most
	Visits     int               `json:"visits,omitempty"` // of targets that are measured in turn, at most
	Block      BlockSeconds      `json:"block"`
	Detectable []Visible         `json:"detectable"`
	// Rotation is the pairs of nodes, client's and server's, that blocks are on in turn, by target; only of targets that
	// do not have the same for all.
	Rotation map[string][]NodePair `json:"rotation,omitempty"`
	Forecast *Forecast             `json:"forecast,omitempty"` // from an earlier measurement; else nil
	Consent  []Concern             `json:"consent,omitempty"`  // what run asks --yes for

	Outline Outline `json:"-"`
}

// BlockSeconds are what a block takes as long as all cases go on.
type BlockSeconds struct {
	Seconds   float64 `json:"seconds"`
	Measuring float64 `json:"measuring"`          // of them, within the windows of runs
	Sites     float64 `json:"sites"`              // of them, making and removing sites
	Switches  float64 `json:"switches,omitempty"` // of them, switching to targets that are measured in turn
}

// A NodePair is the nodes of a run.
type NodePair struct {
	Client string `json:"client"`
	Server string `json:"server"`
}

// Predict works out everything that the plan says, of an experiment whose cases are of these families.
func (d *Document) Predict(k Known, families family.List) error {
	t, err := newTest(d.Experiment)
	if err != nil {
		return err
	}
	if n := Comparisons(d.Experiment); n > 0 {
		for _, spread := range examples {
			d.Detectable = append(d.Detectable, t.at(spread, d.Experiment.Design.Alpha/float64(n)))
		}
	}
	durations := Learn(d.Experiment, families, k.Results)
	d.Outline = NewOutline(d.Experiment, &durations)
	o := d.Outline
	d.Runs, d.Seconds, d.Visits = o.Runs, o.Seconds, o.Visits
	d.Block = BlockSeconds{Seconds: o.Seconds / float64(max(1, o.Blocks)), Measuring: o.Windows, Sites: o.Sites,
		Switches: o.Switches}
	if k.Source.Kind == "" {
		return nil
	}
	d.Forecast, err = newForecast(d.Experiment, &durations, d.Outline, k, t)
	return err
}
