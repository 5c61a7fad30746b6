package importer

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/result"
)

// The class of a kubestr file is its name, or the object of the API server that the program itself writes.
func TestKubestrClass(t *testing.T) {
	for class, want := range map[string]string{
		`"standard"`: "standard", `null`: "unknown",
		`{"metadata":{"name":"encrypted-rwo","uid":"1"},"provisioner":"azuredisk.csi.confidential.cloud"}`: "encrypted-rwo",
	} {
		text := `[{"TestName":"FIO test results","Raw":{"size":"400Gi","storageClass":` + class +
			`,"result":{"fio version":"fio-3.34","jobs":[{"jobname":"read_iops","read":{"iops":588,"total_ios":9}}]}}}]`
		records, err := readFio("kubestr.json", []byte(text))
		if err != nil || len(records) != 1 || result.FactOf(records[0].Environment, "storage-class") != want {
			t.Errorf("%s: %+v, %v", class, records, err)
		}
	}
	const wrong = `[{"Raw":{"storageClass":7,"result":{}}}]`
	if _, err := readFio("k.json", []byte(wrong)); err == nil || !strings.Contains(err.Error(), "k.json") {
		t.Errorf("%v", err)
	}
}

// TestOwnJobsPairByName checks that the runs of a user's own job file and published ones of jobs with the same names
// are compared with each other.
func TestOwnJobsPairByName(t *testing.T) {
	const jobFile = "[randread-qd1]\nrw=randread\n[read-1m]\nrw=read\n"
	suite, err := storage.Family().File.Read("jobs.fio", []byte(jobFile))
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Case = "storage/job"
	theirs, err := Read(find(t, "fio"), []Source{{Name: "jobs.json", Target: "b", Data: sample(t, "fio", "jobs.json")}}, o)
	if err != nil {
		t.Fatal(err)
	}
	ours := result.Results{Experiment: theirs.Experiment}
	ours.Experiment.ID, ours.Experiment.Baseline, ours.Experiment.Cases = "ours", "a", nil
	ours.Experiment.Targets = []result.Target{{Name: "a"}}
	for _, c := range suite.Cases {
		name := c.Name()
		ours.Experiment.Cases = append(ours.Experiment.Cases,
			result.Case{Name: name, Role: c.Role, Metric: c.Workload.Traits().Metric})
		for _, r := range theirs.Runs {
			if r.Case == name {
				r.Target = "a"
				ours.Runs = append(ours.Runs, r)
			}
		}
	}
	j, err := compare.Join(compare.Part{Results: ours, Label: "ours"},
		compare.Part{Results: result.Results{Experiment: theirs.Experiment, Runs: theirs.Runs}, Label: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"storage/job/randread-qd1", "storage/job/read-1m"} {
		targets := map[string]bool{}
		for _, r := range j.Runs {
			if r.Case == name {
				targets[r.Target] = true
			}
		}
		c, found := j.Experiment.Case(name)
		if !found || c.Role != result.Primary || len(targets) != 2 {
			t.Errorf("%s: %+v of %v", name, c, targets)
		}
	}
	if len(j.Experiment.Cases) != 5 {
		t.Errorf("%d cases, not the 5 of the published file", len(j.Experiment.Cases))
	}
}
