package registry

import (
	"os"
	"runtime"

	"github.com/knotmeter/knotmeter/internal/target"
	localtarget "github.com/knotmeter/knotmeter/internal/target/local"
)

func localKind() Kind {
	return Kind{
		Name: "local",
		Targets: []Line{
			{"local:DIR", "storage in a directory of this machine, by its absolute path; and as below"},
			{"local:", "applications, asked from this machine"},
		},
		Example: "local:/var/tmp?size=4GiB&label=disk",
		Options: localtarget.Options(),
		New:     func(s target.Spec) (target.Target, error) { return localtarget.New(s, agentHere()...) },
		// Which directory is not known without a target.
		Features: func() ([]string, error) { return nil, nil },
		Clean:    localtarget.Clean,
		Inspect:  true,
	}
}

// agentHere is the command line of the agent on this machine.
func agentHere() []string {
	own, err := os.Executable()
	if runtime.GOOS == "linux" || err != nil {
		own = self
	}
	return []string{own, AgentCommand}
}
