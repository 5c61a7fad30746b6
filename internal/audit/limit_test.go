package audit

import (
	"slices"
	"testing"
)

// TestLimitsHoldForTheirKind checks that limits of disks do not apply to networks, and limits of links not to local
// disks.
func TestLimitsHoldForTheirKind(t *testing.T) {
	for name, e := range map[string]Evidence{
		"requests of a network": evidence(run("pod-pod/other/tcp-rr", "a", "rate=30000/s", ""),
			withFacts("a", "limit-iops: 500/s; vm-limit-iops: 6400/s")),
		"a stream": evidence(run(pods, "a", "throughput=9 Gbit/s", ""), withFacts("a", "limit-throughput: 60 MB/s")),
		"a disk": evidence(run("storage/read-1m-qd16", "a", "throughput=16 Gbit/s", ""),
			withFacts("a", "link-rate: 1.25 Gbit/s; vm-link-rate: 1 Gbit/s")),
	} {
		for _, f := range Check(e) {
			if f.Rule == "above-link" || f.Rule == "above-storage-limit" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// TestLinkOfMachineWarns checks that exceeding the stated link rate of a VM size is a warning, not an error.
func TestLinkOfMachineWarns(t *testing.T) {
	e := evidence(run(pods, "a", "throughput=12 Gbit/s", ""), withFacts("a", "vm-link-rate: 5 Gbit/s"))
	found := Check(e)
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == "above-link" })
	if i < 0 || found[i].Severity != Warning || found[i].Saw != "12.0 Gbit/s over a link of 5.00 Gbit/s." {
		t.Errorf("%+v", found)
	}
	withFacts("a", "link-rate: 25 Gbit/s; told: link-rate")(&e) // a user's figure replaces that of the VM size
	if found := Check(e); slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "above-link" }) {
		t.Errorf("%+v", found)
	}
}

// TestSourcesOfLimits checks the source of each limit: the user for facts that users gave, otherwise the provider's.
func TestSourcesOfLimits(t *testing.T) {
	const caseName = "storage/randread-4k-qd128"
	e := evidence(
		run(caseName, "a", "rate=588/s; throughput=2 MB/s", "limit-iops: 500/s; limit-source: the table; limit-note: bursts"),
		withFacts("a", "limit-iops: 9/s; limit-throughput: 60 MB/s; vm-limit-iops: 6400/s; vm-limit-source: the sizes; "+
			"told: limit-iops, limit-throughput"))
	got := map[Resource]AppliedLimit{}
	for _, h := range AppliedLimits(families.ImportedCase(caseName), &e.Runs[0], e.Facts["a"]) {
		got[h.Resource] = h
	}
	for resource, want := range map[Resource]Limit{
		VolumeIOPS:      {Most: 500, Source: "the table", Note: "bursts"},
		VolumeBandwidth: {Most: 480e6, Source: sourceUser},
		MachineIOPS:     {Most: 6400, Source: "the sizes"},
	} {
		if l := got[resource].Limit; l.Most != want.Most || l.Source != want.Source || l.Note != want.Note {
			t.Errorf("%s: %+v", resource, l)
		}
	}
	if len(got) != 3 {
		t.Errorf("%+v", got)
	}
}
