package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestKubestrClass reads a storage class that is a name, and one that is an API server's object, as kubestr writes it.
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

// TestJobNames checks cases named by jobs' options, and synonyms by jobs' names if these belong to one case only.
func TestJobNames(t *testing.T) {
	job := func(name, options string) string {
		return `{"jobname":"` + name + `","job options":{` + options + `},"read":{"iops":588,"bw":9,"total_ios":9}}`
	}
	document := func(name string, jobs ...string) Source {
		return Source{Name: name, Target: "disk", Data: []byte(`{"jobs":[` + strings.Join(jobs, ",") + `]}`)}
	}
	const (
		iops = `"rw":"randread","bs":"4k","iodepth":"128"`
		bw   = `"rw":"randread","bs":"1024k","iodepth":"128"`
	)
	for name, test := range map[string]struct {
		sources []Source
		given   string
		want    map[string]string // synonyms by case
	}{
		"both": {[]Source{document("1.json", job("read_iops", iops), job("read_bw", bw))}, "", map[string]string{
			"storage/randread-4k-qd128": "storage/job/read_iops", "storage/randread-1m-qd128": "storage/job/read_bw"}},
		"no options": {[]Source{document("1.json", job("read_iops", ""))}, "",
			map[string]string{"storage/job/read_iops": ""}},
		"two of the same options": {[]Source{document("1.json", job("a", iops), job("b", iops))}, "",
			map[string]string{"storage/job/a": "", "storage/job/b": ""}},
		"no name": {[]Source{document("1.json", job("", iops))}, "", map[string]string{"storage/randread-4k-qd128": ""}},
		"neither": {[]Source{document("1.json", job("", ""))}, "", map[string]string{"storage/unknown": ""}},
		"several names of a case": {[]Source{document("1.json", job("a", iops)), document("2.json", job("b", iops)),
			document("3.json", job("b", iops))}, "", map[string]string{"storage/randread-4k-qd128": ""}},
		"several cases of a name": {[]Source{document("1.json", job("a", iops)), document("2.json", job("a", bw))}, "",
			map[string]string{"storage/randread-4k-qd128": "", "storage/randread-1m-qd128": ""}},
		"a case of the name": {[]Source{document("1.json", job("a", iops)), document("2.json", job("a", ""))}, "",
			map[string]string{"storage/randread-4k-qd128": "", "storage/job/a": ""}},
		"--case": {[]Source{document("1.json", job("a", iops))}, "my-disk", map[string]string{"my-disk": ""}},
	} {
		o := options()
		o.Case = test.given
		read, err := Read(findFormat(t, "fio"), test.sources, o)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range read.Experiment.Cases {
			got[c.Name] = c.Synonym
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
