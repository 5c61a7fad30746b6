package product

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A VolumeLimit is the documented sustained performance of a volume, with its source. A burst on credit exceeds it,
// which the audit reports.
type VolumeLimit struct {
	IOPS   float64 // operations a second
	Bytes  float64 // bytes a second
	Source string
	Note   string // caveat of the figures; may be empty
}

const (
	mib = 1 << 20
	mb  = 1e6
	gib = 1 << 30
)

// Parameters are the parameters of a storage class.
type Parameters map[string]string

// get returns the value of the first of some parameters in lower case. Letter case of names does not matter.
func (p Parameters) get(keys ...string) string {
	for key, value := range p {
		if slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(key, k) }) {
			return strings.ToLower(value)
		}
	}
	return ""
}

// LimitOf returns the limit of a volume of size bytes, for a provisioner and the parameters of a storage class. known
// is false if there are no figures.
func LimitOf(provisioner string, parameters Parameters, size int64) (l VolumeLimit, known bool) {
	for _, p := range All() {
		if size > 0 && slices.Contains(p.Provisioners, provisioner) {
			return p.Limit(provisioner, parameters, size)
		}
	}
	return VolumeLimit{}, false
}

// Facts returns the limit as facts of a target.
func (l VolumeLimit) Facts() []result.Fact {
	facts := []result.Fact{
		{Name: "limit-iops", Value: fmt.Sprintf("%.0f/s", l.IOPS)},
		{Name: "limit-throughput", Value: fmt.Sprintf("%.0f bit/s", 8*l.Bytes)},
		{Name: "limit-source", Value: l.Source},
	}
	if l.Note != "" {
		facts = append(facts, result.Fact{Name: "limit-note", Value: l.Note})
	}
	return facts
}
