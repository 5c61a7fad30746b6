package mesh

import (
	"errors"

	"github.com/knotmeter/knotmeter/internal/lab/userspace"
)

// StartHBONE starts an HBONE proxy in the network namespace of the calling thread, and returns when it listens. stop
// ends it.
func StartHBONE(n Node, i Identity) (stop func() error, err error) {
	text, err := settingsText(n, i)
	if err != nil {
		return nil, err
	}
	p, err := userspace.Start("the HBONE proxy", Command)
	if err != nil {
		return nil, err
	}
	if err := p.Configure(text); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p.Stop, nil
}
