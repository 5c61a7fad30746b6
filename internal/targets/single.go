package targets

import (
	"context"
	"errors"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Single is a site with one place.
type Single struct {
	Place
	Close func(ctx context.Context) error
	Spent func() []result.Value
}

// OpenOne opens a site with one place, for p. After an error nothing is left behind.
func OpenOne(ctx context.Context, t Target, p Placement) (Single, error) {
	site, err := t.Open(ctx, []Placement{p})
	if err != nil {
		return Single{}, err
	}
	place := site.Places[0]
	if place.Err != nil {
		return Single{}, errors.Join(place.Err, site.Close(context.WithoutCancel(ctx)))
	}
	return Single{Place: place, Close: site.Close, Spent: site.Spent}, nil
}
