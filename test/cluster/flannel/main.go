// Command flannel is what flanneld does on a node of the test cluster, from flannel's own packages: a lease by way of
// the API server, a backend, the rules of netfilter, and the file that the CNI configuration is made from.
// Flannel's own main takes in the SDKs of cloud providers for backends that have no place here.
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

// annotations is where the nodes have flannel's data, as everywhere.
const annotations = "flannel.alpha.coreos.com"

// resync is how often netfilter's rules are looked at, in seconds.
const resync = 5

// options are the flags; the node's name is in the environment, as flannel's packages want it.
type options struct {
	kubeconfig string
	config     string // net-conf.json
	subnet     string // where to write subnet.env
	link       string // to the other nodes
	masquerade bool
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flag.StringVar(&o.config, "net-config", "", "the network's net-conf.json")
	flag.StringVar(&o.subnet, "subnet-file", "", "where to write what the CNI configuration is made from")
	flag.StringVar(&o.link, "iface", "eth0", "the link to the other nodes")
	flag.BoolVar(&o.masquerade, "ip-masq", false, "masquerade what leaves the pods' network")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "flannel:", err)
		os.Exit(1)
	}
}

// backends are those of flannel's that need nothing from outside this machine.
var backends = map[string]backend.BackendCtor{"vxlan": vxlan.New, "host-gw": hostgw.New}

// run joins the network and stays until the context ends.
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
		return fmt.Errorf("say that the node's network is there: %w", err)
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

// filter lets the pods' packets through, and masquerades those that leave their network if asked to.
func filter(ctx context.Context, config *subnet.Config, network backend.Network, masquerade bool) error {
	rules := &iptables.IPTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("iptables: %w", err)
	}
	if masquerade {
		// There was no network before this one: a node is made anew with its cluster.
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
