package machine

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestDescribe(t *testing.T) {
	list := func(kinds ...string) (all []netlink.Qdisc) {
		for i, kind := range kinds {
			parent := uint32(0x10000 + i)
			if i == 0 {
				parent = netlink.HANDLE_ROOT
			}
			all = append(all, &netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{Parent: parent}, QdiscType: kind})
		}
		return all
	}
	for _, test := range []struct {
		all  []netlink.Qdisc
		want string
	}{
		{list("noqueue"), "noqueue"},
		{list("mq", "fq_codel", "fq_codel"), "mq (fq_codel)"},
		{list("mq", "fq_codel", "fq", "clsact"), "mq (fq, fq_codel)"},
		{list("ingress"), result.Unknown},
		{list("ingress", "fq"), result.Unknown},
		{nil, result.Unknown},
	} {
		if got := describeQdiscs(test.all); got != test.want {
			t.Errorf("%v: %q, want %q", test.all, got, test.want)
		}
	}
}

// TestReadDevice checks that the loopback device has a queueing discipline, even if it is none.
func TestReadDevice(t *testing.T) {
	d := InspectDevice("lo")
	if d.Name != "lo" || d.Qdisc == "" || d.Offloads == "" || d.Driver == "" || d.Speed == "" {
		t.Errorf("%+v", d)
	}
	if all, err := netlink.QdiscList(nil); err == nil && len(all) > 0 && d.Qdisc == result.Unknown {
		t.Errorf("the kernel lists its disciplines, but %+v", d)
	}
	if d := InspectDevice("there-is-none"); d.Qdisc != result.Unknown ||
		d.Offloads != result.Unknown || d.Driver != result.Unknown {
		t.Errorf("%+v", d)
	}
	t.Logf("%+v", d)
}
