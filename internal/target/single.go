package target

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

// One opens a site with a place for p alone. After an error nothing is left behind.
func One(ctx context.Context, t Target, p Placement) (Single, error) {
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

// Singly makes a site of places that have nothing in common.
func Singly(
	ctx context.Context, placements []Placement, open func(context.Context, Placement) (Single, error),
) (Site, error) {
	var site Site
	var singles []Single
	site.Close = func(ctx context.Context) error {
		var errs []error
		for _, s := range singles {
			errs = append(errs, s.Close(ctx))
		}
		return errors.Join(errs...)
	}
	site.Spent = func() []result.Value {
		var all []result.Value
		for _, s := range singles {
			if s.Spent != nil {
				all = append(all, s.Spent()...)
			}
		}
		return all
	}
	for _, p := range placements {
		s, err := open(ctx, p)
		switch {
		case err == nil:
			singles = append(singles, s)
			site.Places = append(site.Places, s.Place)
		case ctx.Err() != nil || errors.Is(err, ErrUnavailable):
			return Site{}, errors.Join(err, site.Close(context.WithoutCancel(ctx)))
		default:
			site.Places = append(site.Places, Place{Err: err})
		}
	}
	return site, nil
}
