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
	"strings"
	"syscall"
	"time"
)

// initialise runs as PID 1: it starts hold, reaps orphaned processes, and returns when hold ends. The kernel then ends
// every other process.
func initialise(s spec) error {
	c := exec.Command("/proc/self/exe", s.selfArgs(asHolder)...)
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

// hold starts the parts of the cluster, creates the file ready, carries out orders, and returns when a part ends by
// itself.
func hold(ctx context.Context, s spec) error {
	if err := s.mount(); err != nil {
		return err
	}
	if err := await(ctx, "the uplink", 10*time.Second, words("ip link show uplink").run); err != nil {
		return err
	}
	if err := runAll(s.links()); err != nil {
		return err
	}
	h := newParts(s)
	if err := h.startControlPlane(ctx); err != nil {
		return err
	}
	if err := s.registerNodes(); err != nil {
		return err
	}
	for _, n := range s.nodes() {
		if err := h.startNode(ctx, n); err != nil {
			return err
		}
	}
	for _, n := range s.nodes() {
		if err := s.awaitNode(ctx, n, time.Time{}); err != nil {
			return err
		}
	}
	go h.limits.enforce(ctx)
	if err := h.listen(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(s.ready(), nil, 0o600); err != nil {
		return err
	}
	select {
	case err := <-h.ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// kubeletDir is the directory in which every kubelet listens for plugins, whatever its root directory. Each mounts its
// own.
const kubeletDir = "/var/lib/kubelet"

// mount gives the cluster its own /proc, and its own directories in which container runtimes and kubelets keep sockets,
// namespaces and logs.
func (s spec) mount() error {
	list := []command{
		words("mount --make-rprivate /"),
		words("mount -t proc proc /proc"),
		words("mount --make-rshared /"), // kubelets propagate mounts to containers
	}
	for _, dir := range []string{"/run/containerd", "/run/netns", "/var/log", "/var/lib/cni", kubeletDir} {
		list = append(list, command{"mkdir", "-p", dir}, command{"mount", "-t", "tmpfs", "tmpfs", dir})
	}
	return runAll(append(list, words("mount --make-private "+kubeletDir), words("mkdir -p /var/log/containers")))
}

// controlPlane returns the processes of the control plane, in the order of their start.
func (s spec) controlPlane() []process {
	bin := s.program("kubernetes")
	f := s.file
	return []process{
		{name: "etcd", args: command{s.program("etcd"),
			"--data-dir=" + f("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		}, ready: healthy(http.DefaultClient, "http://127.0.0.1:2379/health")},
		{name: "kube-apiserver", args: command{bin, "kube-apiserver",
			"--etcd-servers=http://127.0.0.1:2379", "--advertise-address=" + s.control(), "--secure-port=6443",
			"--tls-cert-file=" + f("apiserver.crt"),
			"--tls-private-key-file=" + f("apiserver.key"), "--client-ca-file=" + f("ca.crt"),
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + f("accounts.crt"),
			"--service-account-signing-key-file=" + f("accounts.key"), "--service-cluster-ip-range=" + s.services(),
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
			"--kubelet-client-certificate=" + f("apiserver-kubelet.crt"), "--kubelet-client-key=" + f("apiserver-kubelet.key"),
			"--kubelet-preferred-address-types=InternalIP",
		}, ready: healthy(unverified, s.api()+"/readyz")},
		{name: "kube-controller-manager", args: command{bin, "kube-controller-manager",
			"--kubeconfig=" + f("controller-manager.conf"), "--authentication-kubeconfig=" + f("controller-manager.conf"),
			"--authorization-kubeconfig=" + f("controller-manager.conf"),
			"--service-account-private-key-file=" + f("accounts.key"),
			"--root-ca-file=" + f("ca.crt"), "--use-service-account-credentials", "--leader-elect=false",
		}},
		{name: "kube-scheduler", args: command{bin, "kube-scheduler",
			"--kubeconfig=" + f("scheduler.conf"), "--authentication-kubeconfig=" + f("scheduler.conf"),
			"--authorization-kubeconfig=" + f("scheduler.conf"), "--leader-elect=false",
		}},
		{name: "provisioner", args: command{s.program("provisioner"),
			"-kubeconfig=" + f("provisioner.conf"), "-dir=" + s.volumes()}},
	}
}

func (p *parts) startControlPlane(ctx context.Context) error {
	for _, process := range p.spec.controlPlane() {
		if err := p.start(ctx, process); err != nil {
			return err
		}
	}
	list := []command{p.spec.kubectl("apply", "-f", p.spec.file("storage.json"))}
	if p.spec.Multus {
		list = append(list, p.spec.makeAttachment()...)
	}
	if err := runAll(list); err != nil {
		return err
	}
	return p.startNetwork(ctx)
}

// startNetwork applies the objects of the network and starts its processes next to the control plane.
func (p *parts) startNetwork(ctx context.Context) error {
	if err := runAll(p.spec.plugin().apply(p.spec)); err != nil {
		return err
	}
	for _, process := range p.spec.plugin().control(p.spec) {
		if err := p.start(ctx, process); err != nil {
			return err
		}
	}
	return nil
}

// unverified accepts any certificate: it only checks whether the API server answers.
var unverified = &http.Client{Timeout: time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}}

// registerNodes creates all Nodes before anything runs on one of them: some agents of networks take minutes to learn of
// a node that is added later.
func (s spec) registerNodes() error {
	args := []string{"apply"}
	for _, n := range s.nodes() {
		args = append(args, "-f", n.file("node.json"))
	}
	return s.kubectl(args...).run()
}

// startNode starts a node for the first time.
func (p *parts) startNode(ctx context.Context, n node) error {
	s := p.spec
	if err := s.makeCgroups(n); err != nil {
		return err
	}
	for _, process := range s.nodeProcesses(n) {
		if err := p.start(ctx, process); err != nil {
			return err
		}
		if process.name != n.containerd() {
			continue
		}
		if err := s.load(n, s.image("pause")).run(); err != nil {
			return err
		}
	}
	return nil
}

func (n node) containerd() string { return n.Name + "-containerd" }
func (n node) kubelet() string    { return n.Name + "-kubelet" }

// nodeProcesses returns the processes of a node, in the order of their start.
func (s spec) nodeProcesses(n node) []process {
	bin := s.program("kubernetes")
	list := []process{{
		name: n.containerd(), args: n.inside(s.program("containerd"), "--config", n.file("containerd.toml")),
		env: s.plugin().runtime(n), cgroup: n.unified(s),
		ready: func(ctx context.Context) error {
			return await(ctx, n.containerd(), time.Minute, s.ctr(n, "version").run)
		},
	}}
	list = append(list, s.plugin().node(s, n)...)
	if s.Filter {
		list = append(list, s.router(n, false))
	}
	list = append(list, process{
		name: n.kubelet(), args: n.inside("unshare", "--mount", "--propagation=unchanged", "sh", "-c",
			"mount -t tmpfs tmpfs "+kubeletDir+` && exec "$@"`, "sh", bin, "kubelet", "--kubeconfig="+s.file(n.Name+".conf"),
			"--config="+n.file("kubelet.json"), "--root-dir="+n.file("kubelet"),
			"--hostname-override="+n.Name, "--node-ip="+s.both(n.Addr, n.Addr6)),
		cgroup: n.unified(s),
		ready:  healthy(http.DefaultClient, "http://"+n.Addr+":10248/healthz"),
	})
	if s.plugin().replacesProxy() {
		return list
	}
	return append(list, process{
		name: n.Name + "-kube-proxy", args: n.inside(bin, "kube-proxy", "--kubeconfig="+s.file("proxy.conf"),
			"--hostname-override="+n.Name, "--proxy-mode=iptables", "--cluster-cidr="+s.pods(), "--conntrack-max-per-core=0",
			"--oom-score-adj=0", "--healthz-bind-address="+n.Addr+":10256", "--metrics-bind-address="+n.Addr+":10249"),
	})
}

// ctr returns a command to the containerd of a node.
func (s spec) ctr(n node, args ...string) command {
	return append(command{s.program("ctr"), "--address", n.socket(), "--namespace", "k8s.io"}, args...)
}

func (s spec) load(n node, archive string) command { return s.ctr(n, "images", "import", archive) }

// kubectl returns a command of kubectl as the administrator.
func (s spec) kubectl(args ...string) command {
	return append(command{s.program("kubernetes"), "kubectl", "--kubeconfig", s.kubeconfig()}, args...)
}

// awaitNode waits until pods can be scheduled on the node: its kubelet has reported it ready since the given time, and
// it has no taints. The limit is 2 minutes.
func (s spec) awaitNode(ctx context.Context, n node, since time.Time) error {
	const state = `{range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime}{end} {.spec.taints[*].key}`
	err := await(ctx, n.Name, 2*time.Minute, func() error {
		text, err := s.kubectl("get", "node", n.Name, "-o", "jsonpath="+state).output()
		if err != nil {
			return err
		}
		return readySince(text, since)
	})
	if err != nil {
		return errors.Join(err, errors.New(tail(s.file(n.kubelet()+".log"))))
	}
	return nil
}

// readySince returns an error unless text has the condition True, a heartbeat not before since, truncated to the second
// as the API does, and no taints.
func readySince(text string, since time.Time) error {
	fields := strings.Fields(text)
	if len(fields) != 2 || fields[0] != "True" {
		return fmt.Errorf("its condition Ready and its taints are %q", text)
	}
	said, err := time.Parse(time.RFC3339, fields[1])
	if err == nil && said.Before(since.Truncate(time.Second)) {
		err = fmt.Errorf("its kubelet has said nothing since %s", fields[1])
	}
	return err
}
