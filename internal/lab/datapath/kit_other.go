//go:build !linux

package datapath

import "github.com/knotmeter/knotmeter/internal/lab"

// Kit is empty: labs need Linux, and a lab target says so.
var Kit lab.Kit
