package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// prices is the flag --price: prices of targets, as in name=0.42/h, repeated.
type prices map[string]compare.Price

const priceHelp = "`TARGET=PRICE` price of a target, such as kube:a=0.42/h or kube:a=0.42EUR/h; repeated"

func (p prices) Type() string { return "target=price" }

func (p prices) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		list = append(list, name+"="+p[name].String())
	}
	return strings.Join(list, ",")
}

// Set adds a price. The target's name may contain "=", a price must not.
func (p *prices) Set(text string) error {
	at := strings.LastIndex(text, "=")
	if at <= 0 {
		return fmt.Errorf("%q is not a target and its price, such as kube:a=0.42/h", text)
	}
	price, err := compare.ParsePrice(text[at+1:])
	if err != nil {
		return err
	}
	if *p == nil {
		*p = prices{}
	}
	if before, twice := (*p)[text[:at]]; twice && before != price {
		return fmt.Errorf("%s is given two prices", text[:at])
	}
	(*p)[text[:at]] = price
	return nil
}

// check returns an error about the price of an unknown target.
func (p prices) check(targets ...string) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(targets, name) {
			return fmt.Errorf("--price: there is no target %s; the targets are %s", name, prose.Choices(name, targets))
		}
	}
	return nil
}

// A pricedSink is a sink that adds the prices of targets to their facts.
type pricedSink struct {
	runner.Sink
	prices prices
}

func (s pricedSink) WriteFacts(target string, facts []result.Fact) error {
	all := compare.SetPrices(s.prices, map[string][]result.Fact{target: facts}, []result.Target{{Name: target}})
	return s.Sink.WriteFacts(target, all[target])
}
