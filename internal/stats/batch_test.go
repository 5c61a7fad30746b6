package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestChiSquaredQuantile compares with quantiles of printed tables.
func TestChiSquaredQuantile(t *testing.T) {
	for _, c := range []struct{ p, freedom, want float64 }{
		{0.025, 1, 0.000982}, {0.975, 1, 5.02389}, {0.5, 2, 1.38629}, {0.025, 3, 0.215795}, {0.975, 3, 9.34840},
		{0.025, 7, 1.68987}, {0.975, 7, 16.0128}, {0.95, 10, 18.3070}, {0.025, 30, 16.7908}, {0.975, 100, 129.561},
		{0.025, 999, 913.301},
	} {
		if got := chiSquaredQuantile(c.p, c.freedom); math.Abs(got-c.want) > 1e-4*c.want+1e-6 {
			t.Errorf("chi squared of %g with %g degrees of freedom is %g, want %g", c.p, c.freedom, got, c.want)
		}
	}
}

// autoregressive returns a series of mean 100 and standard deviation 10 in which successive values have the correlation
// phi.
func autoregressive(random *rand.Rand, steps int, phi float64) []float64 {
	x := make([]float64, steps)
	v := random.NormFloat64()
	for i := range x {
		x[i] = 100 + 10*v
		v = phi*v + math.Sqrt(1-phi*phi)*random.NormFloat64()
	}
	return x
}

// varianceOfMean returns the true relative variance of the mean of such a series.
func varianceOfMean(steps int, phi float64) float64 {
	n := float64(steps)
	factor := (1+phi)/(1-phi) - 2*phi*(1-math.Pow(phi, n))/(n*(1-phi)*(1-phi))
	return 0.01 / n * factor
}

// TestWithinVariance compares the estimate with the known variance of the mean of series, with and without correlation
// of their steps.
func TestWithinVariance(t *testing.T) {
	const runs = 400
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		steps int
		phi   float64
	}{{10, 0}, {19, 0}, {100, 0}, {10, 0.3}, {100, 0.5}, {100, 0.8}, {100, -0.3}, {600, 0.95}} {
		var series [][]float64
		for range runs {
			series = append(series, autoregressive(random, c.steps, c.phi))
		}
		used := c.steps - c.steps%Batches
		got, r := WithinVariance(series...)
		if want := varianceOfMean(used, c.phi); math.Abs(got/want-1) > 0.15 || !(r <= MostCorrelated) {
			t.Errorf("%d steps, correlation %g: variance %g, want %g; batches are correlated by %g",
				c.steps, c.phi, got, want, r)
		}
	}
	// Variation as slow as a series is long cannot be distinguished from differences between runs.
	var slow [][]float64
	for range runs {
		slow = append(slow, autoregressive(random, 100, 0.99))
	}
	if _, r := WithinVariance(slow...); !(r > MostCorrelated) {
		t.Errorf("batches of slow series are correlated by %g", r)
	}
	for what, series := range map[string][][]float64{"none": nil, "short": {{1, 2, 3}}, "zeros": {make([]float64, 20)}} {
		if v, r := WithinVariance(series...); !math.IsNaN(v) || !math.IsNaN(r) {
			t.Errorf("%s: %g, %g", what, v, r)
		}
	}
	if v, r := WithinVariance([]float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}); v != 0 || r != 0 {
		t.Errorf("a constant: %g, %g", v, r)
	}
}

// TestVarianceShare checks that the interval covers the true share as often as its confidence requires.
func TestVarianceShare(t *testing.T) {
	const sets, n, share = 4000, 8, 0.3
	random := rand.New(rand.NewPCG(3, 4))
	outside := 0
	for range sets {
		x := make([]float64, n)
		for i := range x {
			x[i] = random.NormFloat64()
		}
		_, variance := Moments(x)
		if lo, hi := VarianceShare(share, variance, n, 0.95); lo > share || hi < share || lo > hi {
			outside++
		}
	}
	if part := float64(outside) / sets; part < 0.04 || part > 0.06 {
		t.Errorf("%.1f %% of the intervals do not have the share, want 5 %%", 100*part)
	}
	if lo, hi := VarianceShare(2, 1, 30, 0.95); lo != 1 || hi != 1 {
		t.Errorf("a share of 2 is from %g to %g", lo, hi)
	}
}
