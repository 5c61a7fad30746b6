//go:build linux

package labtarget

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

func TestConformance(t *testing.T) {
	offers := map[string][]result.Path{
		"lab:host":                     {result.NodeNode},
		"lab:native":                   {result.PodNodeSame, result.PodPodOther, result.PodSvcOther},
		"lab:vxlan?nodes=3&ip=6":       {result.PodSvcSame, result.PodNodeOther},
		"lab:native+hbone":             {result.PodPodSame, result.PodSvcOther, result.NodeSvcOther},
		"lab:vxlan+hbone?nodes=3&ip=6": {result.PodPodOther, result.PodSvcSame},
		"lab:macvlan":                  {result.PodPodSame, result.NodeSvcOther},
	}
	for text, paths := range offers {
		t.Run(strings.ReplaceAll(text, "/", "_"), func(t *testing.T) {
			targettest.Suite(t, targettest.Config{
				New:    func(t *testing.T) targets.Target { return newTarget(t, text) },
				Offers: targettest.On(paths...), Left: left, Place: cookie,
			})
		})
	}
}

// left lists the interfaces of this machine, the descendants of this process, and the network namespaces that they are
// in or hold.
func left(t *testing.T) []string {
	t.Helper()
	var found []string
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		found = append(found, "interface "+i.Name)
	}
	for _, pid := range descendants(t, os.Getpid()) {
		dir := fmt.Sprintf("/proc/%d", pid)
		line, _ := os.ReadFile(dir + "/cmdline")
		found = append(found, "process "+string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '})))
		fds, _ := filepath.Glob(dir + "/fd/*")
		for _, fd := range append(fds, dir+"/ns/net") {
			if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, "net:") {
				found = append(found, "namespace "+name)
			}
		}
	}
	slices.Sort(found)
	return found
}

func descendants(t *testing.T, of int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(append(all, pid), descendants(t, pid)...)
			}
		}
	}
	return all
}

// cookie returns the kernel's number of a host's network namespace, which is never reused.
func cookie(t *testing.T, h host.Host) string {
	t.Helper()
	var out bytes.Buffer
	if err := h.Run(context.Background(), host.Cmd{Args: []string{host.Agent, cookieArg}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// printCookie prints the cookie on the agent's side.
func printCookie() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	n, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	fmt.Println(n)
	return err
}
