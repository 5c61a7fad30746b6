package explain

import (
	"crypto/sha256"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"testing"
)

// judging lists the files whose code decides what is supported.
var judging = []string{"confirm.go", "count.go", "datapath.go", "evidence.go", "harm.go", "layers.go", "rule.go"}

// TestRulesDigest checks that the identifier of the rules is that of the code, so that no rule changes unnoticed
// between the experiments of docs/evidence/explain-accuracy.md.
func TestRulesDigest(t *testing.T) {
	digest := sha256.New()
	for _, name := range judging {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var s scanner.Scanner
		files := token.NewFileSet()
		s.Init(files.AddFile(name, files.Base(), len(text)), text, nil, 0) // without comments
		for {
			_, kind, literal := s.Scan()
			if kind == token.EOF {
				break
			}
			fmt.Fprintln(digest, kind, literal)
		}
	}
	if got := fmt.Sprintf("%x", digest.Sum(nil))[:len(Rules)]; got != Rules {
		t.Errorf("the rules have changed: set Rules to %q, and measure the accuracy again", got)
	}
}
