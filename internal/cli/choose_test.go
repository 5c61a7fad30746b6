package cli

import "testing"

// TestFindTool checks that only families of which no tool is listed have their other tools.
func TestFindTool(t *testing.T) {
	for names, want := range map[string]string{
		"native":         "native,fio,web,prober,loops,sysbench,openssl,stress-ng",
		"iperf3,openssl": "iperf3,openssl,fio,web,prober",
		"fio":            "fio,native,iperf3,web,prober,loops,sysbench,openssl,stress-ng",
	} {
		if got, err := findTool(names); err != nil || got.Name() != want {
			t.Errorf("%s: %v, %v; want %s", names, got, err, want)
		}
	}
}
