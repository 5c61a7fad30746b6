package compare

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// apartOf reads a relation of things a, b, c … from pairs such as "ac bc".
func apartOf(pairs string) func(i, j int) bool {
	return func(i, j int) bool {
		return slices.Contains(strings.Fields(pairs), string([]byte{byte('a' + i), byte('a' + j)}))
	}
}

func TestLetters(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		apart string
		want  string
	}{
		{"none", 0, "", ""},
		{"one", 1, "", "a"},
		{"all alike", 4, "", "a a a a"},
		{"all apart", 4, "ab ac ad bc bd cd", "a b c d"},
		{"two tiers", 4, "ac ad bc bd", "a a b b"},
		{"overlap", 3, "ac", "a ab b"},
		{"chain", 5, "ac ad ae bd be ce", "a ab bc cd d"},
		{"one apart from all", 4, "ab bc bd", "a b a a"},
		{"hole: neighbours apart, ends not", 3, "ab bc", "a b a"},
		{"hole: first two apart only", 3, "ab", "a b ab"},
		{"cycle of five", 5, "ac ad bd be ce", "ab ac cd de be"},
		{"two couples that cross", 4, "ac bd", "ab ac cd bd"},
		{"three couples", 6, "ab cd ef", "abcd efgh abef cdgh aceg bdfh"},
	} {
		got := strings.Join(letters(c.n, apartOf(c.apart)), " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLettersAreTheRelation checks, for every relation of up to five things and for random ones of up
// to 24, that two things share a letter if and only if they are not apart.
func TestLettersAreTheRelation(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for bits := range 1 << (n * (n - 1) / 2) {
			matrix := make([]bool, n*(n-1)/2)
			for k := range matrix {
				matrix[k] = bits>>k&1 == 1
			}
			checkLetters(t, n, matrix)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 6 + random.IntN(19)
		share := random.Float64()
		matrix := make([]bool, n*(n-1)/2)
		for k := range matrix {
			matrix[k] = random.Float64() < share
		}
		checkLetters(t, n, matrix)
	}
}

// TestLettersOfTheWorstRelation checks that insert and absorb gives up on 20 couples that are apart, because its
// columns double with each couple, and that the display with a column for each pair takes over.
func TestLettersOfTheWorstRelation(t *testing.T) {
	const n = 40
	matrix := make([]bool, n*(n-1)/2)
	for i := 0; i < n; i += 2 {
		matrix[index(i, i+1)] = true
	}
	if columns := insertAbsorb(n, func(i, j int) bool { return matrix[index(i, j)] }); columns != nil {
		t.Errorf("%d columns are no reason to give up", len(columns))
	}
	checkLetters(t, n, matrix)
	checkLetters(t, 3, []bool{true, true, true})
}

// index returns the position of i < j in a triangular matrix.
func index(i, j int) int { return j*(j-1)/2 + i }

func checkLetters(t *testing.T, n int, matrix []bool) {
	t.Helper()
	got := letters(n, func(i, j int) bool { return matrix[index(i, j)] })
	for j := range n {
		if got[j] == "" {
			t.Fatalf("%v: %d has no letter: %q", matrix, j, got)
		}
		for i := range j {
			if shares := strings.ContainsAny(got[i], got[j]); shares == matrix[index(i, j)] {
				t.Fatalf("%v: %d and %d share a letter: %v; %q", matrix, i, j, shares, got)
			}
		}
	}
	if !strings.HasPrefix(got[0], "a") {
		t.Fatalf("%v: the first has %q", matrix, got[0])
	}
}
