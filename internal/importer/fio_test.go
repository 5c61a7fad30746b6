package importer

import (
	"strings"
	"testing"

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
