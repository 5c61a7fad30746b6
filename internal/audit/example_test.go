package audit_test

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A closed loop with one outstanding request cannot complete 5000 requests per second with a mean latency of 400 µs.
func ExampleCheckRun() {
	closedLoop := result.Case{Name: "pod-pod/other/tcp-rr", Load: result.Load{Outstanding: 1}}
	run := result.Run{ID: "0001", Case: closedLoop.Name, Target: "a", Window: 10, Values: []result.Value{
		result.NewValue(metric.Named(metric.Rate), 5000),
		result.NewValue(metric.Named(metric.Mean), 400e-6),
	}}
	for _, f := range audit.CheckRun(closedLoop, run) {
		fmt.Println(f.Severity, f.Rule)
		fmt.Println(f.Saw)
	}
	// Output:
	// error closed-loop
	// 5.00 kop/s x 400 µs = 2.00 requests outstanding instead of 1: more than there were.
}
