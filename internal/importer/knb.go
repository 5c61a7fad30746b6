package importer

import (
	"encoding/json"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

const wantedKnb = "the JSON that knb -o json -f FILE writes"

// knbRun is the JSON of knb 1.5. Bandwidths are the receiver's in Mbit/s, CPU is in percent of a node, memory in MB.
// knb writes nothing in place of a number that it lacks, which makes its JSON invalid.
type knbRun struct {
	Metadata struct {
		Name      string `json:"name"`
		Generator string `json:"generator"`
		Version   string `json:"version"`
		Date      string `json:"date"`
		Server    string `json:"server-node"`
		Client    string `json:"client-node"`
		Buffer    string `json:"socket-buffer-size"`
	} `json:"metadata"`
	Data struct {
		CPU     string   `json:"cpu"`
		Kernel  string   `json:"kernel"`
		Version string   `json:"k8s-version"`
		MTU     any      `json:"mtu"`
		Idle    knbTest  `json:"idle"`
		Pod     knbTests `json:"pod2pod"`
		Service knbTests `json:"pod2svc"`
	} `json:"data"`
}

type knbTests struct {
	TCP knbTest `json:"tcp"`
	UDP knbTest `json:"udp"`
}

type knbTest struct {
	Bandwidth *float64 `json:"bandwidth"`
	Client    knbNode  `json:"client"`
	Server    knbNode  `json:"server"`
}

type knbNode struct {
	CPU map[string]float64 `json:"cpu"` // total, user, nice, system, iowait, steal
	RAM *float64           `json:"ram"`
}

// readKnb reads the four tests of a run, with CPU and memory of the idle nodes. knb always measures between pods on two
// nodes, and its UDP is unpaced.
func readKnb(name string, data []byte) ([]Record, error) {
	return readDocuments(name, data, wantedKnb, func(d document) ([]Record, error) {
		var k knbRun
		if err := d.decode(&k, wantedKnb); err != nil {
			return nil, err
		}
		if k.Metadata.Generator != "knb" {
			return nil, d.fail("metadata.generator", "it is %q and not \"knb\"; wanted %s", k.Metadata.Generator, wantedKnb)
		}
		records := k.records(d)
		if len(records) == 0 {
			return nil, d.fail("data", "neither pod2pod nor pod2svc has a test with a bandwidth")
		}
		return records, nil
	})
}

func (k knbRun) records(d document) []Record {
	var records []Record
	for _, t := range []struct {
		key, path, workload string
		test                knbTest
	}{
		{"pod2pod.tcp", "pod-pod/other", string(netload.TCPStream), k.Data.Pod.TCP},
		{"pod2pod.udp", "pod-pod/other", string(netload.UDPUnpaced), k.Data.Pod.UDP},
		{"pod2svc.tcp", "pod-svc/other", string(netload.TCPStream), k.Data.Service.TCP},
		{"pod2svc.udp", "pod-svc/other", string(netload.UDPUnpaced), k.Data.Service.UDP},
	} {
		if t.test.Bandwidth == nil {
			continue
		}
		r := k.record(t.test)
		r.Path, r.Workload = t.path, t.workload
		r.Place, r.Text = d.place("data."+t.key), d.text
		if t.workload == string(netload.UDPUnpaced) {
			r.Facts = append(r.Facts, network.Unpaced)
		}
		records = append(records, r)
	}
	return records
}

// knbModes lists the CPU modes that knb reports of a node.
var knbModes = []struct{ key, metric string }{
	{"user", metric.CPUUser}, {"nice", metric.CPUNice}, {"system", metric.CPUSystem}, {"iowait", metric.CPUIOWait},
	{"steal", metric.CPUSteal},
}

func (k knbRun) record(t knbTest) Record {
	r := Record{Tool: "knb", Environment: k.environment()}
	// knb writes the local time of the machine that it ran on, without a zone.
	if start, err := time.Parse(time.DateTime, k.Metadata.Date); err == nil {
		r.Start = start
	}
	var v values
	v.add(metric.Throughput, *t.Bandwidth*1e6)
	for _, side := range []struct {
		suffix     string
		node, idle knbNode
	}{{"", t.Client, k.Data.Idle.Client}, {metric.OfServer, t.Server, k.Data.Idle.Server}} {
		for _, mode := range knbModes {
			if share, ok := side.node.CPU[mode.key]; ok {
				v.add(mode.metric+side.suffix, share/100)
			}
		}
		if total, ok := side.node.CPU["total"]; ok {
			v.add(metric.CPUTotal+side.suffix, total/100)
		}
		if total, ok := side.idle.CPU["total"]; ok {
			v.add(metric.CPUIdleLevel+side.suffix, total/100)
		}
		if side.node.RAM != nil {
			v.add(metric.Memory+side.suffix, *side.node.RAM*1e6)
		}
		if side.idle.RAM != nil {
			v.add(metric.MemoryIdleLevel+side.suffix, *side.idle.RAM*1e6)
		}
	}
	r.Values = v
	r.Facts = []result.Fact{
		{Name: "tool.version", Value: "knb " + orUnknown(k.Metadata.Version)},
		{Name: "socket-buffer-size", Value: orUnknown(k.Metadata.Buffer)},
		{Name: "node.client", Value: orUnknown(k.Metadata.Client)},
		{Name: "node.server", Value: orUnknown(k.Metadata.Server)},
	}
	if k.Metadata.Client != "" && k.Metadata.Client == k.Metadata.Server {
		text := "client and server ran on one node, " + k.Metadata.Client + ", which knb does not mean to do"
		r.Warnings = []result.Warning{{Code: result.OneNode, Text: text}}
	}
	return r
}

func (k knbRun) environment() []result.Fact {
	mtu := result.Unknown
	switch m := k.Data.MTU.(type) {
	case string:
		mtu = orUnknown(m)
	case float64:
		text, _ := json.Marshal(m)
		mtu = string(text)
	}
	return []result.Fact{
		{Name: "cpu-model", Value: orUnknown(k.Data.CPU)}, {Name: "kernel", Value: orUnknown(k.Data.Kernel)},
		{Name: "kubernetes", Value: orUnknown(k.Data.Version)}, {Name: "pod-mtu", Value: mtu},
	}
}
