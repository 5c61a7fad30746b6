//go:build !linux

package cgroup

// Leftovers lists nothing: only Linux has control groups.
func Leftovers() ([]string, error) { return nil, nil }

// Clean removes nothing: only Linux has control groups.
func Clean(func(string) bool) ([]string, error) { return nil, nil }
