package labtarget

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Options lists the options of a lab target, for documentation and completion.
func Options() []string {
	return []string{"mtu", "rate", "services", "nodes", "ip", "delay", "loss", "dir"}
}

// parse reads the options of a target. Every error Is target.ErrSpec and names the option and its range.
func parse(spec target.Spec) (lab.Topology, error) {
	t := lab.Default()
	if err := spec.Only(Options()...); err != nil {
		return t, err
	}
	for _, name := range Options() {
		if name == "dir" {
			continue // of storage, and no matter of the topology
		}
		text, ok := spec.Options[name]
		if !ok {
			continue
		}
		if err := set(&t, name, text); err != nil {
			return t, fmt.Errorf("%w: %s: option %s=%s: %w", target.ErrSpec, spec.Text, name, text, err)
		}
	}
	if err := t.Validate(); err != nil {
		return t, fmt.Errorf("%w: %s: option %w", target.ErrSpec, spec.Text, err)
	}
	return t, nil
}

func set(t *lab.Topology, name, text string) (err error) {
	switch name {
	case "mtu":
		t.MTU, err = number(text, lab.MinMTU, lab.MaxMTU)
	case "nodes":
		t.Nodes, err = number(text, lab.MinNodes, lab.MaxNodes)
	case "rate":
		t.Rate, err = rate(text)
	case "services":
		t.Services = text
	case "ip":
		if text != "4" && text != "6" {
			return fmt.Errorf("it is 4 or 6")
		}
		t.IPv6 = text == "6"
	case "delay":
		wait, wrong := time.ParseDuration(text)
		if wrong != nil || wait < 0 || wait > lab.MaxDelay {
			return fmt.Errorf("it is a time from 0s to %v", lab.MaxDelay)
		}
		t.Delay = &wait
	case "loss":
		t.Loss, err = unit.ParseAs(text, unit.Ratio)
		if err != nil || !(t.Loss >= 0 && t.Loss <= lab.MaxLoss) {
			return fmt.Errorf("it is a fraction from 0 to %g, such as 0.01 or 1%%", lab.MaxLoss)
		}
	}
	return err
}

func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("it is a whole number from %d to %d", least, most)
	}
	return n, nil
}

// rate reads "1Gbit/s", or "1G" for short.
func rate(text string) (int64, error) {
	long := text
	if !strings.Contains(text, "/") && !strings.HasSuffix(text, "bps") {
		long = strings.TrimSuffix(text, "bit") + "bit/s"
	}
	v, err := unit.ParseAs(long, unit.BitPerSecond)
	if err != nil || v < lab.MinRate || v > lab.MaxRate {
		return 0, fmt.Errorf("it is a rate from %s to %s", unit.Format(lab.MinRate, unit.BitPerSecond), unit.Format(lab.MaxRate, unit.BitPerSecond))
	}
	return int64(v), nil
}
