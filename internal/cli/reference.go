package cli

import (
	"strings"

	"github.com/knotmeter/knotmeter/internal/reference"
)

// A published is the flag --reference: names of published tables, repeated or separated by commas.
type published []reference.Table

func (p *published) String() string {
	var names []string
	for _, t := range *p {
		names = append(names, t.Name)
	}
	return strings.Join(names, ",")
}

func (p *published) Type() string { return "name" }

func (p *published) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		t, err := reference.Find(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		*p = append(*p, t)
	}
	return nil
}

const referenceHelp = "show a published table next to the results, as of another machine and method; repeated " +
	"('knotmeter list reference')"
