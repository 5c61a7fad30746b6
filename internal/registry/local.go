package registry

import (
	"os"
	"runtime"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/local"
	"github.com/knotmeter/knotmeter/internal/vault"
)

func localKind() Kind {
	k := Kind{
		Name: "local",
		Targets: []Line{
			{"local:DIR", "storage in a directory of this machine, by its absolute path; and as below"},
			{"local:", "applications, asked from this machine"},
		},
		Example: "local:/var/tmp?size=4GiB&label=disk",
		Options: []Line{
			{"size=4GiB", "the most that may be used (default: half of what is free, up to 16 GiB)"},
			{"volume=reuse", "one file for all runs, or fresh: a new one in each"},
			{"label=NAME", "the target's name in all output"},
		},
		New: func(s target.Spec) (target.Target, error) { return localtarget.New(s, agentHere()...) },
		// Which directory is not known without a target.
		Features: func() ([]string, error) { return nil, nil },
		Clean:    localtarget.Clean,
		Inspect:  true,
	}
	for _, o := range vault.Options(false) {
		k.Options = append(k.Options, Line{o[0], o[1]})
	}
	return k
}

// agentHere is the command line of the agent on this machine.
func agentHere() []string {
	own, err := os.Executable()
	if runtime.GOOS == "linux" || err != nil {
		own = self
	}
	return []string{own, AgentCommand}
}
