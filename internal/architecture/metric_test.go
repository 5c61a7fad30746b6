package architecture

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
)

// TestMetricsByConstants checks that code names a metric by its constant, so that a typo does not compile.
func TestMetricsByConstants(t *testing.T) {
	for _, s := range sources(t) {
		if s.pkg == "internal/metric" {
			continue
		}
		for _, name := range strayMetrics(s.file) {
			t.Errorf("%s names the metric %s by its text and not by a constant of package metric", s.name, name)
		}
	}
}

// strayMetrics returns the string literals of a file that name a metric: those in the place of a metric's name, and
// those that can name nothing else. Words such as rate and loss are also names of options, facts and columns.
func strayMetrics(f *ast.File) []string {
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.ValueSpec:
			return n.Type == nil // a typed constant names something else
		case *ast.BasicLit:
			if text, is := quotedText(n); is && known(text) && strings.ContainsAny(text, "-.0123456789") {
				found = append(found, n.Value)
			}
		default:
			for _, e := range namesMetric(n) {
				if _, is := quotedText(e); is {
					found = append(found, e.(*ast.BasicLit).Value)
				}
			}
		}
		return true
	})
	return found
}

// namesMetric returns the expressions of a node that name a metric: Metric: x, r.Value(x), v.Metric == x, and the cases
// of a switch over it.
func namesMetric(n ast.Node) []ast.Expr {
	ofField := func(e ast.Expr) bool {
		s, is := e.(*ast.SelectorExpr)
		return is && s.Sel.Name == "Metric"
	}
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, is := n.Key.(*ast.Ident); is && key.Name == "Metric" {
			return []ast.Expr{n.Value}
		}
	case *ast.CallExpr:
		if s, is := n.Fun.(*ast.SelectorExpr); is && slices.Contains([]string{"Value", "Named", "Of", "Add"}, s.Sel.Name) {
			return n.Args
		}
	case *ast.BinaryExpr:
		if ofField(n.X) && (n.Op == token.EQL || n.Op == token.NEQ) {
			return []ast.Expr{n.Y}
		}
	case *ast.SwitchStmt:
		var cases []ast.Expr
		for _, c := range n.Body.List {
			if ofField(n.Tag) {
				cases = append(cases, c.(*ast.CaseClause).List...)
			}
		}
		return cases
	}
	return nil
}

// quotedText returns the value of a string literal in double quotes; false if it is empty or e is something else.
func quotedText(e ast.Expr) (string, bool) {
	l, is := e.(*ast.BasicLit)
	if !is || l.Kind != token.STRING || strings.HasPrefix(l.Value, "`") {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil && text != ""
}

func known(name string) bool {
	_, ok := metric.Find(name)
	return ok
}
