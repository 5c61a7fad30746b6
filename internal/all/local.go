package all

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/local"
)

func localKind() Kind {
	return Kind{
		Name:    "local",
		Targets: []Line{{"local:DIR", "storage alone: a directory of this machine, by its absolute path"}},
		Example: "local:/var/tmp?size=4GiB&label=disk",
		Options: []Line{
			{"size=4GiB", "the most that may be used (default: half of what is free, up to 16 GiB)"},
			{"volume=reuse", "one file for all runs, or fresh: a new one in each"},
			{"label=NAME", "the target's name in all output"},
		},
		New: localtarget.New,
		// Which directory is not known without a target.
		Features: func() ([]string, error) { return nil, nil },
		Clean:    func(_ context.Context, specs []target.Spec) ([]string, error) { return localtarget.Clean(specs) },
		Inspect:  true,
	}
}
