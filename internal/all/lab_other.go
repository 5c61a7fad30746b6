//go:build !linux

package all

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/lab"
)

// Kit is empty: labs need Linux, and a lab target says so.
func Kit() lab.Kit { return lab.Kit{} }

func clean(context.Context) ([]string, error) { return nil, nil }

func features() ([]string, error) { return nil, lab.NeedsLinux }
