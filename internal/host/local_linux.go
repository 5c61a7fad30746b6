package host

import (
	"runtime"
	"syscall"
)

func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// lockThread locks the goroutine to its thread until the returned function is called. The kernel kills a command when
// the thread that started it ends, even if the process goes on.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
