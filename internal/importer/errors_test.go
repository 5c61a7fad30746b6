package importer

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorsSayWhereAndWhat(t *testing.T) {
	for _, c := range []struct{ name, format, text, want string }{
		{"empty", "iperf3", "", "f: cannot be imported: it is empty; wanted the JSON that iperf3 -c SERVER -J prints"},
		{"no JSON", "iperf3", "\nconnect failed: refused\n", `f:1: cannot be imported: it begins with ` +
			`"connect failed: refused", and no line with a JSON object; wanted the JSON that iperf3 -c SERVER -J prints`},
		{"torn", "iperf3", "note\n{\"start\":\n {\"version\": \"iperf 3.12\"\n",
			"f:4: cannot be imported: broken JSON (unexpected EOF)"},
		{"another tool's", "iperf3", `{"fio version":"fio-3.33"}`,
			"f:1: cannot be imported: not the JSON of iperf3: it has no start.version"},
		{"a wrong type", "fio", "{\"jobs\":[\n{\"jobname\":\"a\",\"read\":{\"iops\":\"many\"}}]}",
			"f:2: cannot be imported: jobs.read.iops is a JSON string and should be a number; wanted the JSON that fio"},
		{"no jobs", "fio", "{}", "f:1: cannot be imported: jobs: there is none; wanted"},
		{"several machines", "fio", `{"client_stats":[{}]}`, "client_stats: it is the output of a fio client"},
		{"an empty list", "fio", "[]", "the list is empty"},
		{"not knb", "knb", `{"metadata":{"generator":"me"}}`,
			`f:1: cannot be imported: metadata.generator: it is "me" and not "knb"`},
		{"knb without tests", "knb", `{"metadata":{"generator":"knb"},"data":{"pod2pod":{"tcp":{}}}}`,
			"data: neither pod2pod nor pod2svc has a test with a bandwidth"},
		{"a hole in knb's JSON", "knb",
			"{\"metadata\":{\"generator\":\"knb\"},\n\"data\":{\"pod2pod\":{\"tcp\":{\"bandwidth\": ,\n",
			"f:2: cannot be imported: broken JSON (invalid character ','"},
		{"vault without tests", "vault-benchmark", `{"level":"info"}`, "no test in it has latencies"},
		{"a wrong type in vault's", "vault-benchmark", `{"metrics":{"total":{"latencies":{"mean":"x"}}}}`,
			"f:1: cannot be imported: metrics.total: "},
		{"vault's metrics", "vault-benchmark", `{"metrics":3}`, "metrics: it is no JSON object of tests"},
		{"no banner", "netperf", "131072 16384 16384 1.00 11770.35\n",
			`f:1: cannot be imported: wanted the output of netperf`},
		{"no result", "netperf", "\nMIGRATED TCP STREAM TEST from a to b\n",
			"f:2: cannot be imported: nothing was measured after this line"},
		{"a table cut short", "netperf", "UDP UNIDIRECTIONAL SEND TEST from a to b\n" +
			"bytes   bytes    secs            #      #   10^6bits/sec\n\n212992 1400 1.00 10 0 1405.86\n",
			"f:4: cannot be imported: the receiver's line is missing below it"},
		{"too many values", "netperf", "TCP STREAM TEST from a to b\nbytes bytes bytes secs. 10^6bits/sec\n\n1 2 3 4 5 6 7\n",
			"f:4: cannot be imported: it has 7 values; a table of TCP STREAM"},
		{"no unit", "netperf", "MIGRATED TCP STREAM TEST from a to b\nTHROUGHPUT=3\n",
			"THROUGHPUT is 3 in unit \"\"; wanted a unit of netperf's"},
		{"no number", "netperf", "MIGRATED TCP RR TEST from a to b\nP50_LATENCY=fast\n",
			`P50_LATENCY is "fast", wanted a number`},
		{"values of -o", "netperf", "MIGRATED TCP RR TEST from a to b\nThroughput,Throughput Units\n3\n",
			"f:3: cannot be imported: it has 1 values for 2 names"},
		{"an empty table", "csv", "", "f:1: cannot be imported: it is empty; wanted a header"},
		{"no column", "csv", "case,metric,value\n",
			`f:1: cannot be imported: there is no column "unit" among ["case" "metric" "value"]`},
		{"no lines", "csv", "case,metric,unit,value\n", "there are no lines below the header"},
		{"cells", "csv", "case,metric,unit,value\na,b,s\n", "f:2: cannot be imported: it has 3 cells, the header 4"},
		{"a decimal comma", "csv", "case;metric;unit;value\na;p50;s;1,5\n",
			`f:2: cannot be imported: the value "1,5" is not a number`},
		{"not a number", "csv", "case,metric,unit,value\na,p50,s,NaN\n", `the value "NaN" in unit "s"`},
		{"an unknown unit", "csv", "case,metric,unit,value\na,p50,furlong,1\n",
			`the value "1" in unit "furlong": wanted a number and a unit such as`},
		{"a run twice", "csv", "case,metric,unit,value,run\na,p50,s,1,1\na,p50,s,2,1\n",
			`f:3: cannot be imported: run "1" of a has p50 a second time`},
		{"better", "csv", "case,metric,unit,value,better\na,p50,s,1,faster\n",
			`better is "faster"; wanted higher, lower or none`},
		{"a block", "csv", "case,metric,unit,value,block\na,p50,s,1,first\n",
			`the block "first" is not a whole number from 1`},
		{"n", "csv", "case,metric,unit,value,n\na,p50,s,1,0\n", `n is "0"`},
		{"no case", "csv", "case,metric,unit,value\n,p50,s,1\n", "the case is empty"},
		{"a quote", "csv", "case,metric,unit,value\n\"a,p50,s,1\n", "f:2"},
	} {
		t.Run(c.format+" "+c.name, func(t *testing.T) {
			read, err := findFormat(t, c.format).Read("f", []byte(c.text))
			if err == nil {
				t.Fatalf("no error, but %d records", len(read.Records))
			}
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, wanted %q in it", err, c.want)
			}
		})
	}
}

func findFormat(t testing.TB, name string) Format {
	t.Helper()
	for _, f := range Formats() {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no format %s", name)
	return Format{}
}
