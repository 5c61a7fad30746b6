// Package machine reads facts about the machine that this process runs on: kernel, CPUs, memory, disks, file systems,
// sockets.
//
// The lab and the agents of package preflight add these facts to their own. All values are texts for package result,
// and result.Unknown where the machine does not report one.
package machine
