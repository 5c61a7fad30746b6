//go:build !linux

package registry

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func clean(targets.Cleaning) ([]string, error) { return nil, nil }

func features() ([]lab.Finding, error) { return nil, lab.NeedsLinux }
