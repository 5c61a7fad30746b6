package audit

import (
	"slices"
	"testing"
)

// What users tell of a target is about its links or about its volumes: no network exceeds the IOPS of a disk, and no
// disk of the machine itself a link.
func TestLimitsHoldForTheirKind(t *testing.T) {
	for name, e := range map[string]Evidence{
		"requests of a network": evidence(run("pod-pod/other/tcp-rr", "a", "rate=30000/s", ""),
			about("a", "limit-iops: 500/s; vm-limit-iops: 6400/s")),
		"a stream": evidence(run(pods, "a", "throughput=9 Gbit/s", ""), about("a", "limit-throughput: 60 MB/s")),
		"a disk": evidence(run("storage/read-1m-qd16", "a", "throughput=16 Gbit/s", ""),
			about("a", "link-rate: 1.25 Gbit/s; vm-link-rate: 1 Gbit/s")),
	} {
		for _, f := range Check(e) {
			if f.Rule == "above-link" || f.Rule == "above-storage-limit" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// The link that a provider states for a size of VM is no reason to leave a run out, unlike one that is known.
func TestLinkOfMachineWarns(t *testing.T) {
	e := evidence(run(pods, "a", "throughput=12 Gbit/s", ""), about("a", "vm-link-rate: 5 Gbit/s"))
	found := Check(e)
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == "above-link" })
	if i < 0 || found[i].Severity != Warning || found[i].Saw != "12.0 Gbit/s over a link of 5.00 Gbit/s." {
		t.Errorf("%+v", found)
	}
	about("a", "link-rate: 25 Gbit/s; told: link-rate")(&e) // which users know better
	if found := Check(e); slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "above-link" }) {
		t.Errorf("%+v", found)
	}
}

// Each limit names its source: what users told, whose fact it is instead of a provider's, else that of the provider.
func TestSourcesOfLimits(t *testing.T) {
	const of = "storage/randread-4k-qd128"
	e := evidence(
		run(of, "a", "rate=588/s; throughput=2 MB/s", "limit-iops: 500/s; limit-source: the table; limit-note: bursts"),
		about("a", "limit-iops: 9/s; limit-throughput: 60 MB/s; vm-limit-iops: 6400/s; vm-limit-source: the sizes; "+
			"told: limit-iops, limit-throughput"))
	got := map[Resource]Held{}
	for _, h := range Hold(families.Known(of), &e.Runs[0], e.Facts["a"]) {
		got[h.Resource] = h
	}
	for resource, want := range map[Resource]Limit{
		VolumeIOPS:      {Most: 500, Source: "the table", Note: "bursts"},
		VolumeBandwidth: {Most: 480e6, Source: sourceTold},
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
