//go:build unix && !linux

package host

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func stay() (leave func()) { return func() {} }
