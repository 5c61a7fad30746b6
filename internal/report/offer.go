package report

import (
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// An Offer lists what can be measured on a target, and what cannot.
type Offer struct {
	Target   string
	Offered  []string
	Refusals []Refusal
	Facts    []result.Fact
}

// A Refusal lists what cannot be measured for one reason.
type Refusal struct {
	What   []string `json:"what"`
	Reason string   `json:"reason"`
}

// OfferText writes an offer for a terminal. The error is the writer's.
func OfferText(w io.Writer, o Offer) error {
	var p prose.Page
	names := []int{25}
	p.Row("", names, []string{o.Target}, prose.Enumerate(o.Offered))
	for _, r := range o.Refusals {
		p.Paragraph("    not ", "      ", strings.Join(r.What, ", ")+":")
		p.Paragraph("      ", "      ", r.Reason)
	}
	for _, f := range o.Facts {
		p.Row("    ", names, []string{f.Name}, f.String())
	}
	return write(w, p.String())
}
