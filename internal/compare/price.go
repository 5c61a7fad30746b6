package compare

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// PriceFact is the name of the fact that holds a target's price in the form of [Price.String].
const PriceFact = "price"

// A Price is the cost of a target, as stated by the user: it is never measured.
type Price struct {
	PerHour  float64 // finite and above 0
	Currency string  // "EUR", "$" …; may be empty
}

// ErrPrice is wrapped by every error about the text of a price.
var ErrPrice = errors.New("no price")

var priceForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([\p{L}\p{Sc}]{1,8})?/h$`)

// ParsePrice reads a price such as 0.42/h, 0.42EUR/h or 0.42 $/h. Every error wraps [ErrPrice].
func ParsePrice(text string) (Price, error) {
	m := priceForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Price{}, fmt.Errorf("%w: %q is not a number per hour, such as 0.42/h or 0.42EUR/h", ErrPrice, text)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil || math.IsInf(v, 0) || v <= 0 {
		return Price{}, fmt.Errorf("%w: %q is not above 0", ErrPrice, text)
	}
	return Price{v, m[2]}, nil
}

// String returns the price in the form that ParsePrice reads.
func (p Price) String() string {
	number := strconv.FormatFloat(p.PerHour, 'f', -1, 64)
	if p.Currency != "" {
		number += " " + p.Currency
	}
	return number + "/h"
}

// A Priced is the cost of a unit of performance on a target, compared with its cost on the baseline.
type Priced struct {
	Case     string `json:"case"`
	Metric   string `json:"metric"`
	Per      string `json:"per"` // the unit that the prices are for: "Gbit/s", "1000 op/s", of volumes "GB/s", "1000 IOPS"
	Currency string `json:"currency,omitempty"`
	Baseline string `json:"baseline"`
	Target   string `json:"target"`
	// BaselinePrice and TargetPrice are the price per hour divided by the median in that unit.
	BaselinePrice Number `json:"baseline_price"`
	TargetPrice   Number `json:"target_price"`
	// Ratio is the target's price of a unit relative to the baseline's: the ratio of the prices per hour divided by 1 +
	// the row's change, with the interval of that change. It may differ from TargetPrice / BaselinePrice, which use
	// medians.
	Ratio Number   `json:"ratio"`
	CI    Interval `json:"ci"`
	Level float64  `json:"level"` // confidence of the interval, as in the row
}

// perUnit returns the unit in which a metric is priced, and its size in base units; volumes have units of their own.
// Only metrics for which more is better have a price: a price per second of latency would mean nothing.
func perUnit(r Row, volume bool) (per string, of float64, ok bool) {
	switch {
	case r.Better != metric.Higher:
		return "", 0, false
	case volume && r.Unit == unit.BitPerSecond:
		return "GB/s", 8e9, r.Role == result.Primary // the bandwidth of small blocks has no useful price
	case volume && r.Unit == unit.PerSecond:
		return "1000 IOPS", 1e3, true
	case r.Unit == unit.BitPerSecond:
		return "Gbit/s", 1e9, true
	case r.Unit == unit.PerSecond:
		return "1000 op/s", 1e3, true
	}
	return "", 0, false
}

// addPrices adds the cost of performance for rows whose targets both have a price in the same currency. A row without a
// change, or with one of -100 %, has no ratio and is left out.
func (c *Comparison) addPrices(e result.Experiment, facts func(target string) []result.Fact) {
	for _, r := range c.Comparisons {
		rc, _ := e.Case(r.Case)
		per, of, ok := perUnit(r, rc.Load.Volume)
		a, errA := ParsePrice(result.FactOf(facts(r.Baseline), PriceFact))
		b, errB := ParsePrice(result.FactOf(facts(r.Target), PriceFact))
		if !ok || errA != nil || errB != nil || a.Currency != b.Currency || !r.Change.Known() || r.Change <= -1 {
			continue
		}
		if !(r.BaselineMedian > 0) || !(r.TargetMedian > 0) {
			continue
		}
		prices := b.PerHour / a.PerHour
		p := Priced{
			Case: r.Case, Metric: r.Metric, Per: per, Currency: a.Currency, Baseline: r.Baseline, Target: r.Target,
			BaselinePrice: Number(a.PerHour / (float64(r.BaselineMedian) / of)),
			TargetPrice:   Number(b.PerHour / (float64(r.TargetMedian) / of)),
			Ratio:         Number(prices / (1 + float64(r.Change))), CI: unbounded(), Level: r.Level,
		}
		// More performance is a lower price for each unit of it: the ends are swapped.
		if r.CI.Hi > -1 {
			p.CI.Lo = prices / (1 + r.CI.Hi)
		}
		if r.CI.Lo > -1 {
			p.CI.Hi = prices / (1 + r.CI.Lo)
		}
		c.Prices = append(c.Prices, p)
	}
}

// SetPrices returns the facts of targets with the given prices, by target, in place of earlier ones. The facts passed
// in are not modified.
func SetPrices(prices map[string]Price, facts map[string][]result.Fact,
	targets []result.Target) map[string][]result.Fact {
	all := map[string][]result.Fact{}
	maps.Copy(all, facts)
	for _, t := range targets {
		p, given := prices[t.Name]
		if !given {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(facts[t.Name]), func(f result.Fact) bool { return f.Name == PriceFact })
		all[t.Name] = append(others, result.Fact{Name: PriceFact, Value: p.String()})
	}
	return all
}
