//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// initialise is PID 1: it starts hold, reaps what others leave behind and ends with hold, and the
// kernel ends everything else then.
func initialise(s spec) error {
	c := exec.Command("/proc/self/exe", s.again("hold")...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid == c.Process.Pid {
			return fmt.Errorf("hold ended with status %d", status.ExitStatus())
		}
	}
}

// again are the arguments that make this program do a command for the same cluster.
func (s spec) again(name string) []string {
	return []string{name, "-dir", s.Dir, "-network", s.Network, "-nodes", strconv.Itoa(s.Nodes)}
}

// hold starts the parts of the cluster, says that it is ready, and ends when one of them does.
func hold(ctx context.Context, s spec) error {
	ended := make(chan error, 20)
	if err := s.mount(); err != nil {
		return err
	}
	if err := await(ctx, "the uplink", 10*time.Second, func() error { return words("ip link show uplink").run() }); err != nil {
		return err
	}
	if err := runAll(s.links()); err != nil {
		return err
	}
	if err := s.startControlPlane(ctx, ended); err != nil {
		return err
	}
	for _, n := range s.nodes() {
		if err := s.startNode(ctx, n, ended); err != nil {
			return err
		}
	}
	if err := s.awaitNodes(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(s.ready(), nil, 0o600); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// mount gives the cluster its own view of what belongs to a machine: processes, and the places where
// container runtimes keep their names.
func (s spec) mount() error {
	list := []command{
		words("mount --make-rprivate /"),
		words("mount -t proc proc /proc"),
		words("mount --make-rshared /"), // kubelets hand mounts on to containers
	}
	for _, dir := range []string{"/run/netns", "/var/log", "/var/lib/cni", "/run/flannel"} {
		list = append(list, command{"mkdir", "-p", dir}, command{"mount", "-t", "tmpfs", "tmpfs", dir})
	}
	return runAll(append(list, words("mkdir -p /var/log/containers")))
}

// controlPlane are the processes of the control plane after etcd, in the order of their start.
func (s spec) controlPlane() []process {
	bin := s.program("kubernetes")
	f := s.file
	return []process{
		{name: "kube-apiserver", args: command{bin, "kube-apiserver",
			"--etcd-servers=http://127.0.0.1:2379", "--advertise-address=" + controlAddr, "--secure-port=6443",
			"--tls-cert-file=" + f("apiserver.crt"), "--tls-private-key-file=" + f("apiserver.key"), "--client-ca-file=" + f("ca.crt"),
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + f("accounts.crt"),
			"--service-account-signing-key-file=" + f("accounts.key"), "--service-cluster-ip-range=" + serviceCIDR,
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
			"--kubelet-client-certificate=" + f("apiserver-kubelet.crt"), "--kubelet-client-key=" + f("apiserver-kubelet.key"),
			"--kubelet-preferred-address-types=InternalIP",
		}},
		{name: "kube-controller-manager", args: command{bin, "kube-controller-manager",
			"--kubeconfig=" + f("controller-manager.conf"), "--authentication-kubeconfig=" + f("controller-manager.conf"),
			"--authorization-kubeconfig=" + f("controller-manager.conf"), "--service-account-private-key-file=" + f("accounts.key"),
			"--root-ca-file=" + f("ca.crt"), "--use-service-account-credentials", "--leader-elect=false",
		}},
		{name: "kube-scheduler", args: command{bin, "kube-scheduler",
			"--kubeconfig=" + f("scheduler.conf"), "--authentication-kubeconfig=" + f("scheduler.conf"),
			"--authorization-kubeconfig=" + f("scheduler.conf"), "--leader-elect=false",
		}},
	}
}

func (s spec) startControlPlane(ctx context.Context, ended chan<- error) error {
	etcd := process{name: "etcd", args: command{s.program("etcd"), "--data-dir=" + s.file("etcd"), "--unsafe-no-fsync", "--log-level=warn"}}
	if err := s.start(etcd, ended); err != nil {
		return err
	}
	if err := await(ctx, "etcd", time.Minute, func() error { return healthy(http.DefaultClient, "http://127.0.0.1:2379/health") }); err != nil {
		return err
	}
	for _, p := range s.controlPlane() {
		if err := s.start(p, ended); err != nil {
			return err
		}
		if p.name != "kube-apiserver" {
			continue
		}
		// Only liveness: the certificate is not looked at.
		client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		if err := await(ctx, "the API server", 2*time.Minute, func() error { return healthy(client, apiURL+"/readyz") }); err != nil {
			return errors.Join(err, errors.New(tail(s.file("kube-apiserver.log"))))
		}
	}
	return nil
}

func (s spec) startNode(ctx context.Context, n node, ended chan<- error) error {
	if err := n.makeCgroups(); err != nil {
		return err
	}
	containerd := process{name: n.Name + "-containerd", args: n.inside(s.program("containerd"), "--config", filepath.Join(n.Dir, "containerd.toml"))}
	if err := s.start(containerd, ended); err != nil {
		return err
	}
	err := await(ctx, containerd.name, time.Minute, func() error { return s.ctr(n, "version").run() })
	if err != nil {
		return errors.Join(err, errors.New(tail(s.file(containerd.name+".log"))))
	}
	if err := s.ctr(n, "images", "import", s.program("pause.tar")).run(); err != nil {
		return err
	}
	if err := s.kubectl("apply", "-f", filepath.Join(n.Dir, "node.json")).run(); err != nil {
		return err
	}
	for _, p := range s.nodeProcesses(n) {
		if err := s.start(p, ended); err != nil {
			return err
		}
	}
	return nil
}

// nodeProcesses are the processes of a node after containerd.
func (s spec) nodeProcesses(n node) []process {
	bin := s.program("kubernetes")
	list := []process{
		{name: n.Name + "-kubelet", args: n.inside(bin, "kubelet", "--kubeconfig="+s.file(n.Name+".conf"),
			"--config="+filepath.Join(n.Dir, "kubelet.json"), "--root-dir="+filepath.Join(n.Dir, "kubelet"),
			"--hostname-override="+n.Name, "--node-ip="+n.Addr)},
		{name: n.Name + "-kube-proxy", args: n.inside(bin, "kube-proxy", "--kubeconfig="+s.file("proxy.conf"),
			"--hostname-override="+n.Name, "--proxy-mode=iptables", "--cluster-cidr="+podCIDR, "--conntrack-max-per-core=0",
			"--oom-score-adj=0", "--healthz-bind-address="+n.Addr+":10256", "--metrics-bind-address="+n.Addr+":10249")},
	}
	return list
}

// ctr is a command to the containerd of a node.
func (s spec) ctr(n node, args ...string) command {
	return append(command{s.program("ctr"), "--address", n.socket(), "--namespace", "k8s.io"}, args...)
}

// kubectl is kubectl as the administrator.
func (s spec) kubectl(args ...string) command {
	return append(command{s.program("kubernetes"), "kubectl", "--kubeconfig", s.kubeconfig()}, args...)
}

func (s spec) awaitNodes(ctx context.Context) error {
	for _, n := range s.nodes() {
		err := await(ctx, n.Name, 2*time.Minute, func() error {
			return s.kubectl("wait", "--for=condition=Ready", "node/"+n.Name, "--timeout=5s").run()
		})
		if err != nil {
			return errors.Join(err, errors.New(tail(s.file(n.Name+"-kubelet.log"))))
		}
	}
	return nil
}
