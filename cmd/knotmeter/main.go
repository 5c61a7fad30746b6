// Command knotmeter measures and compares Kubernetes clusters: network datapaths, storage, API servers and
// applications. Everything it does is in internal/cli.
package main

import (
	"os"
	"runtime"

	"k8s.io/klog/v2"

	"github.com/knotmeter/knotmeter/internal/cli"
)

// version is set by the linker when the program is built, which needs a variable.
var version = "devel"

func main() {
	// As the lab's holder this program moves threads into network namespaces and throws them away. The main thread is
	// what /proc/self shows of it, and must never be one of those.
	runtime.LockOSThread()
	// What client-go logs is also in the errors that it returns; on standard error it would stand between our lines.
	klog.SetLogger(klog.Logger{})
	os.Exit(cli.Main(cli.Signals(), cli.StandardStreams(), version, os.Args[1:]))
}
