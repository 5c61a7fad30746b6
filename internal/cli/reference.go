package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/published"
)

// publishedTables is the flag --reference: names of published tables, repeated or separated by commas.
type publishedTables []published.Table

func (p *publishedTables) String() string {
	var names []string
	for _, t := range *p {
		names = append(names, t.Name)
	}
	return strings.Join(names, ",")
}

func (p *publishedTables) Type() string { return "name" }

func (p *publishedTables) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		t, err := published.Find(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		*p = append(*p, t)
	}
	return nil
}

const referenceHelp = "`NAME,…` show published tables next to the results, measured on other machines by other " +
	"methods (see 'knotmeter list references')"

// matches is the flag --match: pairs of our targets and those of published tables, repeated.
type matches []published.Match

const matchHelp = "`TARGET=PUBLISHED` show a target next to one of a published table, with the change of both; repeated"

func (m *matches) String() string {
	var list []string
	for _, x := range *m {
		list = append(list, x.Ours+"="+x.Published)
	}
	return strings.Join(list, ",")
}

func (m *matches) Type() string { return "target=published" }

// Set adds a match. The name of our target may contain "=", a published one must not.
func (m *matches) Set(text string) error {
	at := strings.LastIndex(text, "=")
	if at <= 0 || at == len(text)-1 {
		return fmt.Errorf("%q is not a target and a published one, such as vxlan='BYOCNI VXLAN'", text)
	}
	*m = append(*m, published.Match{Ours: text[:at], Published: text[at+1:]})
	return nil
}

// check returns an error about a match whose target is unknown, in the experiment or in the tables.
func (m matches) check(tables publishedTables, targets []string) error {
	var there []string
	for _, t := range tables {
		there = append(there, t.Targets...)
	}
	for _, x := range m {
		switch {
		case len(tables) == 0:
			return errors.New("--match: --reference has to name the published table")
		case !slices.Contains(targets, x.Ours):
			return fmt.Errorf("--match: there is no target %s; there are %s", x.Ours, prose.Choices(x.Ours, targets))
		case !slices.Contains(there, x.Published):
			return fmt.Errorf("--match: %q is not a target of %s; there are %s",
				x.Published, tables.String(), prose.Choices(x.Published, there))
		}
	}
	return nil
}
