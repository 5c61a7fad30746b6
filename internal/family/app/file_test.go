package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
)

const two = `
shop:
  url: https://shop.example:8443
  loads: [rate=100, rate=400, knee=50ms]
  requests:
  - {name: read, path: /}
cart:
  url: http://cart.example
  http: 2
  requests:
  - name: write
    method: POST
    path: /x
    body: '{"id": "{{uuid}}"}'
    secrets: {Authorization: {env: TOKEN, prefix: "Bearer "}}
`

func TestParseFile(t *testing.T) {
	list, err := parseFile("dir/apps.yaml", []byte(two))
	if err != nil || len(list) != 2 || list["cart"].URL != "http://cart.example" {
		t.Fatalf("%+v, %v", list, err)
	}
	if diff := cmp.Diff([]string{"rate=100", "rate=400", "knee=50ms"}, list["shop"].Loads); diff != "" {
		t.Error(diff)
	}
	for name, e := range list {
		text, err := e.definition()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Workload{Text: text}.Description()
		if diff := cmp.Diff(e.Description, again); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	one, err := parseFile("dir/shop.yaml", []byte("url: http://x\nrequests:\n- {name: a, path: /}\n"))
	if err != nil || len(one) != 1 || one["shop"].URL != "http://x" {
		t.Errorf("%+v, %v", one, err)
	}
}

// TestErrors checks that errors have the line of the file.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":            "f.yaml: it describes nothing",
		"a: b: c":     "f.yaml: ",
		"url: x\n\tb": "f.yaml:2: ",
		"url: http://x\nrequests:\n- name: a\n  path: /\n  pth: /\n":                  `f.yaml:5: `,
		"url: http://x\nrequests:\n- name: a\n  path: /\n- name: b\n  path: nope\n":   `f.yaml:5: `,
		"url: ftp://x\nrequests:\n- name: a\n  path: /\n":                             `f.yaml:1: `,
		"shop:\n  url: http://x\n  requests:\n  - {name: a, path: '/{{now}}'}\n":      `f.yaml:4: `,
		"shop:\n  url: http://x\n  timeout: soon\n  requests: [{name: a, path: /}]\n": `f.yaml:3: `,
		"shop: 3": "f.yaml: ",
	} {
		_, err := parseFile("f.yaml", []byte(text))
		if !errors.Is(err, webapp.ErrDescription) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", text, err, want)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(two))
	f.Add([]byte("url: http://x\nrequests: [{name: a, path: /}]"))
	f.Add([]byte("a: {requests: [{}]}\nb: &x [*x]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseFile("f", data)
		if err != nil {
			if !errors.Is(err, webapp.ErrDescription) {
				t.Errorf("%v", err)
			}
			return
		}
		for _, e := range list {
			text, err := e.definition()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := (Workload{Text: text}).Description(); err != nil || !cmp.Equal(again, e.Description) {
				t.Errorf("%q is read back as %+v, %v", text, again, err)
			}
		}
	})
}
