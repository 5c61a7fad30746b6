package lab_test

import (
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
)

func TestPlanOfAnImpairedUnderlay(t *testing.T) {
	wait := 5 * time.Millisecond
	topology := lab.Default()
	topology.Delay, topology.Loss = &wait, 0.01
	plan, err := datapath.Kit.Plan("host", topology)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/plans/host-impaired.txt", plan.String())
	for _, bad := range []lab.Topology{
		{Nodes: 2, MTU: 1500, Services: "nftables", Loss: 0.5},
		{Nodes: 2, MTU: 1500, Services: "nftables", Delay: new(time.Second)},
	} {
		if err := bad.Validate(); err == nil {
			t.Errorf("loss %v and delay %v are taken as valid", bad.Loss, bad.Delay)
		}
	}
}
