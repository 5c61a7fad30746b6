//go:build !linux

package registry

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/target"
)

// Kit is empty: labs need Linux, and a lab target says so.
func Kit() lab.Kit { return lab.Kit{} }

func clean(target.Cleaning) ([]string, error) { return nil, nil }

func features() ([]string, error) { return nil, lab.NeedsLinux }
