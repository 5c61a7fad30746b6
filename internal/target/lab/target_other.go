//go:build !linux

package labtarget

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

// New reads the options of a lab target; the target says that it is not supported.
func New(spec target.Spec, _ lab.Config) (target.Target, error) {
	_, err := parse(spec)
	return nowhere{}, err
}

type nowhere struct{}

func (nowhere) Supports(target.Placement) error { return lab.NeedsLinux }

func (nowhere) Begin(context.Context, target.Plan) ([]string, error) { return nil, nil }

func (nowhere) Shares(context.Context) ([]string, error) { return nil, lab.NeedsLinux }

func (nowhere) Facts(context.Context) ([]result.Fact, error) { return nil, lab.NeedsLinux }

func (nowhere) Open(context.Context, []target.Placement) (target.Site, error) {
	return target.Site{}, lab.NeedsLinux
}

func (nowhere) Close() error { return nil }
