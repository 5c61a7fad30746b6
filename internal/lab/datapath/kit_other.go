//go:build !linux

package datapath

import "github.com/knotmeter/knotmeter/internal/lab"

// Kit is empty, since labs need Linux.
var Kit lab.Kit
