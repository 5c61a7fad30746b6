// Command knotmeter measures and compares Kubernetes clusters: network datapaths, storage, API servers and
// applications. Its commands are in internal/cli.
package main

import (
	"os"
	"runtime"

	"k8s.io/klog/v2"

	"github.com/knotmeter/knotmeter/internal/cli"
)

// version is a variable because the linker sets it (-X main.version=…).
var version = "devel"

func main() {
	// As the lab's holder this program moves threads to network namespaces and then ends them. /proc/self shows the
	// main thread, so it must never be one of these.
	runtime.LockOSThread()
	// client-go returns what it logs in its errors too; its log lines would disturb the output on standard error.
	klog.SetLogger(klog.Logger{})
	streams := cli.StandardStreams()
	streams.OutClosed = stdoutClosed()
	os.Exit(cli.Main(cli.Signals(), streams, version, os.Args[1:]))
}
