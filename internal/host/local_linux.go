package host

import (
	"runtime"
	"syscall"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// stay keeps the goroutine on its thread until the function that it returns is called: it is the end of the thread that
// started a command, and not of the process, at which the kernel kills it.
func stay() (leave func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
