//go:build !linux

package program

import "errors"

// enterGroup returns an error: this system has no control groups.
func enterGroup([]string) error { return errors.New("control groups need Linux") }
