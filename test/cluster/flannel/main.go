// Command flannel does the work of flanneld on a node of the test cluster, by flannel's own packages: it takes a lease
// from the API server, runs a backend, makes the rules of netfilter, and writes subnet.env for the CNI configuration.
// Flannel's own main would link the SDKs of cloud providers, whose backends the test cluster does not need.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	"github.com/flannel-io/flannel/pkg/backend/hostgw"
	"github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
)

// annotations is the prefix of the nodes' annotations with flannel's data, flannel's default.
const annotations = "flannel.alpha.coreos.com"

// resync is the interval at which netfilter's rules are checked, in seconds.
const resync = 5

// options holds the flags. Flannel's packages read the node's name from the environment.
type options struct {
	kubeconfig string
	config     string // path of net-conf.json
	subnet     string // path of subnet.env, which is written
	link       string // interface to the other nodes
	masquerade bool
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the API server")
	flag.StringVar(&o.config, "net-config", "", "the network's net-conf.json")
	flag.StringVar(&o.subnet, "subnet-file", "", "file to write for the CNI configuration: subnet.env")
	flag.StringVar(&o.link, "iface", "eth0", "interface to the other nodes")
	flag.BoolVar(&o.masquerade, "ip-masq", false, "masquerade what leaves the pods' network")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "flannel:", err)
		os.Exit(1)
	}
}

// backends holds those backends of flannel that need nothing outside this machine.
var backends = map[string]backend.BackendCtor{"vxlan": vxlan.New, "host-gw": hostgw.New}

// run joins the network and serves it until the context ends.
func run(ctx context.Context, o options) error {
	manager, err := kube.NewSubnetManager(ctx, "", o.kubeconfig, annotations, o.config, true)
	if err != nil {
		return err
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return err
	}
	link, err := lookup(o.link, config)
	if err != nil {
		return err
	}
	newBackend, ok := backends[config.BackendType]
	if !ok {
		return fmt.Errorf("%s: there is no backend %q here", o.config, config.BackendType)
	}
	b, err := newBackend(manager, link)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	network, err := b.RegisterNetwork(ctx, &wg, config)
	if err != nil {
		return fmt.Errorf("backend %s: %w", config.BackendType, err)
	}
	if err := filter(ctx, config, network, o.masquerade); err != nil {
		return err
	}
	lease := network.Lease()
	err = manager.HandleSubnetFile(o.subnet, config, o.masquerade, lease.Subnet, lease.IPv6Subnet, network.MTU())
	if err != nil {
		return err
	}
	wg.Go(func() { network.Run(ctx) })
	if err := manager.CompleteLease(ctx, lease, &wg); err != nil {
		return fmt.Errorf("report the node's network as ready: %w", err)
	}
	wg.Wait()
	if ctx.Err() == nil {
		return errors.New("the backend ended")
	}
	return nil
}

func lookup(name string, config *subnet.Config) (*backend.ExternalInterface, error) {
	family, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, err
	}
	return ipmatch.LookupExtIface(name, "", "", family, ipmatch.PublicIPOpts{})
}

// filter makes the rules that forward the pods' packets and, on request, masquerade those that leave their network.
func filter(ctx context.Context, config *subnet.Config, network backend.Network, masquerade bool) error {
	rules := &iptables.IPTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("iptables: %w", err)
	}
	if masquerade {
		// The previous network is empty: a node has none when flannel starts.
		var none ip.IP4Net
		none6 := ip.IP6Net{IP: &ip.IP6{}}
		err := rules.SetupAndEnsureMasqRules(ctx, config.Network, none, none,
			config.IPv6Network, none6, none6, network.Lease(), resync, false)
		if err != nil {
			return fmt.Errorf("iptables: %w", err)
		}
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, resync)
	return nil
}
