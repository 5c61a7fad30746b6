package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/nearest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// costs are the prices of targets, which no measurement tells: name=0.42/h, repeated.
type costs map[string]compare.Price

const costHelp = "what a target costs, such as kube:a=0.42/h or kube:a=0.42EUR/h; repeated"

func (c *costs) flag(f *pflag.FlagSet) { f.Var(c, "cost", costHelp) }

func (c costs) Type() string { return "target=price" }

func (c costs) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		list = append(list, name+"="+c[name].String())
	}
	return strings.Join(list, ",")
}

// Set reads one price. The target's name may have a "=" in it, a price has none.
func (c *costs) Set(text string) error {
	at := strings.LastIndex(text, "=")
	if at <= 0 {
		return fmt.Errorf("%q is not a target and its price, such as kube:a=0.42/h", text)
	}
	price, err := compare.ParsePrice(text[at+1:])
	if err != nil {
		return err
	}
	if *c == nil {
		*c = costs{}
	}
	if _, twice := (*c)[text[:at]]; twice {
		return fmt.Errorf("%s is given two prices", text[:at])
	}
	(*c)[text[:at]] = price
	return nil
}

// check refuses prices of targets that there are not.
func (c costs) check(targets ...result.Target) error {
	names := targetNames(targets)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--cost: there is no target %s; there are %s", name, nearest.List(name, names))
		}
	}
	return nil
}

// recorded is a sink that has the prices among the facts of their targets.
func (c costs) recorded(s runner.Sink) runner.Sink {
	if len(c) == 0 {
		return s
	}
	return pricedSink{s, c}
}

type pricedSink struct {
	runner.Sink
	costs costs
}

func (s pricedSink) WriteFacts(target string, facts []result.Fact) error {
	all := compare.SetPrices(s.costs, map[string][]result.Fact{target: facts}, []result.Target{{Name: target}})
	return s.Sink.WriteFacts(target, all[target])
}

// onto gives the prices to the targets of results, instead of those that they had.
func (c costs) onto(facts map[string][]result.Fact, targets []result.Target) map[string][]result.Fact {
	if len(c) == 0 {
		return facts
	}
	return compare.SetPrices(c, facts, targets)
}
