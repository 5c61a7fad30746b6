package product

import "github.com/knotmeter/knotmeter/internal/result"

// kindnet is the plugin of kind.
func kindnet() Product {
	return Product{
		Name: "kindnet", Images: []string{"kindnetd"}, Carries: true,
		Encapsulation: func(e Evidence) []Property {
			if !e.runs("kindnet") {
				return nil
			}
			return []Property{{Value: result.None, Source: "kindnet has nothing else", Strength: Designed}}
		},
	}
}
