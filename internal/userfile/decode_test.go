package userfile

import "testing"

func TestDecode(t *testing.T) {
	type file struct {
		Blocks int      `json:"blocks"`
		Looks  []int    `json:"looks"`
		Cases  []string `json:"cases"`
		Rate   float64  `json:"rate"`
		Deep   struct {
			Loud bool `json:"loud"`
			List []struct {
				Weight int `json:"weight"`
			} `json:"list"`
		} `json:"deep"`
	}
	for text, want := range map[string]string{
		"blocks: 3\ndeep: {loud: true}\n": "",
		"rate: 1\nblocks: many\n":         "line 2: blocks: want a whole number, not text",
		"blocks: 3.5\n":                   "line 1: blocks: want a whole number, not the number 3.5",
		"rate: fast\n":                    "line 1: rate: want a number, not text",
		"cases: all\n":                    "line 1: cases: want a list, not text",
		"rate: 1\nlooks: [8, x]\n":        "line 2: looks: want a whole number, not text",
		"deep:\n  loud: perhaps\n":        "line 2: deep.loud: want true or false, not text",
		"deep:\n  list:\n  - weight: 1\n  - weight: heavy\n": "line 4: deep.list.weight: want a whole number, not text",
		"deep: 3\n":              "line 1: deep: want fields, not the number",
		"blocks: 3\nblokcs: 4\n": `line 2: unknown field "blokcs"`,
		"[]":                     "want fields, not a list",
		"blocks: 1\n\tdeep: 2":   "line 2: found a tab character that violates indentation",
	} {
		var v file
		got := ""
		if err := Decode([]byte(text), &v); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}
