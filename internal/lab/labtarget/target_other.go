//go:build !linux

package labtarget

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// New parses the options of a lab target. Every method of the target reports that labs are not supported here.
func New(spec result.Spec, _ lab.Config) (targets.Target, error) {
	_, err := parse(spec)
	return nowhere{}, err
}

// A nowhere is a lab target on a system without labs.
type nowhere struct{}

func (nowhere) Supports(targets.Placement) error { return lab.NeedsLinux }

func (nowhere) Begin(context.Context, targets.Plan) ([]string, error) { return nil, nil }

func (nowhere) Shares(context.Context) ([]string, error) { return nil, lab.NeedsLinux }

func (nowhere) Facts(context.Context) ([]result.Fact, error) { return nil, lab.NeedsLinux }

func (nowhere) Open(context.Context, []targets.Placement) (targets.Site, error) {
	return targets.Site{}, lab.NeedsLinux
}

func (nowhere) Close() error { return nil }
