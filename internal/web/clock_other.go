//go:build !linux

package web

import "time"

func sleep(d time.Duration) { time.Sleep(d) }

func punctual() func() { return func() {} }
