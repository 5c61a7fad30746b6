package plan

import "github.com/knotmeter/knotmeter/internal/result"

// Schema of a [Document].
const Schema = "knotmeter/plan/v1"

// A Concern is an effect of the experiment that needs consent (--yes): it may disturb other users or disclose
// something.
type Concern struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (c Concern) String() string { return c.What + ": " + c.Why }

// A Document is what `plan` prints: everything that is known before an experiment. Its JSON form is knotmeter/plan/v1.
type Document struct {
	Schema     string            `json:"schema"`
	Experiment result.Experiment `json:"experiment"`
	Runs       int               `json:"runs"`             // at most
	Seconds    float64           `json:"seconds"`          // predicted, at most
	Visits     int               `json:"visits,omitempty"` // of targets that are measured in turn, at most
	Block      BlockSeconds      `json:"block"`
	Detectable []Detectable      `json:"detectable"`
	// Rotation lists the pairs of nodes that successive blocks use, by target; only of targets with several pairs.
	Rotation map[string][]NodePair `json:"rotation,omitempty"`
	Forecast *Forecast             `json:"forecast,omitempty"` // from an earlier measurement; else nil
	Consent  []Concern             `json:"consent,omitempty"`  // for which run needs --yes

	Outline Outline `json:"-"`
}

// BlockSeconds are the predicted seconds of a block while all cases continue, and their parts.
type BlockSeconds struct {
	Seconds   float64 `json:"seconds"`
	Measuring float64 `json:"measuring"`          // within the windows of runs
	Sites     float64 `json:"sites"`              // opening and closing sites
	Switches  float64 `json:"switches,omitempty"` // switching to targets that are measured in turn
}

// A NodePair is the pair of nodes of a run.
type NodePair struct {
	Client string `json:"client"`
	Server string `json:"server"`
}

// Predict fills in the predictions for d.Experiment, from the times of its cases, by name. Errors are about the looks
// or the known results.
func (d *Document) Predict(k EarlierResults, cases map[string]CaseTimes) error {
	t, err := newVerdictTest(d.Experiment)
	if err != nil {
		return err
	}
	if n := Comparisons(d.Experiment); n > 0 {
		for _, spread := range exampleSpreads {
			d.Detectable = append(d.Detectable, t.detectable(spread, d.Experiment.Design.Alpha/float64(n)))
		}
	}
	durations := Learn(d.Experiment, cases, k.Results)
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
