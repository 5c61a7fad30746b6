package kubeapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/api"
)

// The latencies that the API server reports itself are facts of a run and never the measurement: they exclude the
// network, and their histograms are too coarse for small latencies.

const (
	sliMetric   = "apiserver_request_sli_duration_seconds" // without the time in webhooks and queues
	wholeMetric = "apiserver_request_duration_seconds"     // with that time
	startMetric = "process_start_time_seconds"             // when the server began to count
)

// A histogram is the state of a histogram at one time.
type histogram struct {
	buckets map[float64]float64 // cumulative counts by upper bounds in seconds
	sum     float64             // s
	n       float64
}

// A scrape holds the metrics of a server that are needed here.
type scrape struct {
	start      float64 // start of the server, seconds since 1970
	sli, whole histogram
}

// A series holds the labels that identify the histograms of a call.
type series struct{ verb, resource, subresource string }

// seriesOf returns the series in which the API server counts a call, and false if it has none.
func seriesOf(c api.Call) (series, bool) {
	verbs := map[string]string{"create": "POST", "get": "GET", "list": "LIST",
		"update": "PUT", "patch": "PATCH", "scale": "PATCH", "delete": "DELETE"}
	verb, has := verbs[c.Verb]
	if !has || c.Resource == "" {
		return series{}, false
	}
	s := series{verb: verb, resource: apiserver.KindOf(c.Resource).Plural}
	if c.Verb == "scale" {
		s.subresource = "scale"
	}
	return s, true
}

// maxMetrics limits how much of a server's metrics is read, in bytes; large clusters have tens of megabytes.
const maxMetrics = 256 << 20

// errMetrics is wrapped by every error about a server's metrics.
var errMetrics = errors.New("the API server's metrics")

// parseMetrics reads the text format of Prometheus and adds up the histograms of a series over all other labels.
func parseMetrics(r io.Reader, wanted series) (scrape, error) {
	s := scrape{sli: histogram{buckets: map[float64]float64{}}, whole: histogram{buckets: map[float64]float64{}}}
	in := bufio.NewScanner(io.LimitReader(r, maxMetrics))
	in.Buffer(make([]byte, 64<<10), 1<<20)
	for in.Scan() {
		line := in.Text()
		if !strings.HasPrefix(line, sliMetric) && !strings.HasPrefix(line, wholeMetric) &&
			!strings.HasPrefix(line, startMetric) {
			continue
		}
		m, err := parseSample(line)
		if err != nil {
			return s, fmt.Errorf("%w: %w", errMetrics, err)
		}
		s.add(m, wanted)
	}
	if err := in.Err(); err != nil {
		return s, fmt.Errorf("%w: %w", errMetrics, err)
	}
	if s.start == 0 {
		return s, fmt.Errorf("%w do not say since when they are counted (%s)", errMetrics, startMetric)
	}
	return s, nil
}

// add adds a sample to its histogram if it belongs to the wanted series.
func (s *scrape) add(m sample, wanted series) {
	if m.name == startMetric {
		s.start = m.value
		return
	}
	if (series{m.labels["verb"], m.labels["resource"], m.labels["subresource"]}) != wanted {
		return
	}
	for metric, c := range map[string]*histogram{sliMetric: &s.sli, wholeMetric: &s.whole} {
		switch m.name {
		case metric + "_bucket":
			if le, err := strconv.ParseFloat(m.labels["le"], 64); err == nil && !math.IsNaN(le) {
				c.buckets[le] += m.value
			}
		case metric + "_sum":
			c.sum += m.value
		case metric + "_count":
			c.n += m.value
		}
	}
}

// A sample is one line of metrics.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	sampleLine = regexp.MustCompile(`^(\w+)(?:\{((?:[, ]*\w+="(?:\\.|[^"\\])*")*)[, ]*\}|\s)\s*(\S+)`)
	labelPair  = regexp.MustCompile(`(\w+)="((?:\\.|[^"\\])*)"`)
	unescaped  = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// parseSample reads name{label="value",…} value.
func parseSample(line string) (sample, error) {
	m := sampleLine.FindStringSubmatch(line)
	if m == nil {
		return sample{}, fmt.Errorf("%.80q has no value, or a label has none", line)
	}
	v, err := strconv.ParseFloat(m[3], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return sample{}, fmt.Errorf("%.80q has no finite number", line)
	}
	s := sample{name: m[1], labels: map[string]string{}, value: v}
	for _, label := range labelPair.FindAllStringSubmatch(m[2], -1) {
		s.labels[label[1]] = unescaped.Replace(label[2])
	}
	return s, nil
}

// since returns what was counted between two scrapes, or an error if the server was restarted or another replica
// answered.
func (s scrape) since(before scrape) (sli, whole histogram, err error) {
	if s.start != before.start {
		return sli, whole, fmt.Errorf("%w are of several replicas, or of one that was started again: they began to be "+
			"counted at %.0f s and at %.0f s", errMetrics, before.start, s.start)
	}
	if sli, err = s.sli.minus(before.sli); err == nil {
		whole, err = s.whole.minus(before.whole)
	}
	return sli, whole, err
}

func (c histogram) minus(before histogram) (histogram, error) {
	d := histogram{buckets: map[float64]float64{}, sum: c.sum - before.sum, n: c.n - before.n}
	decreased := d.n < 0
	for le, n := range before.buckets {
		decreased = decreased || c.buckets[le] < n
	}
	for le, n := range c.buckets {
		d.buckets[le] = n - before.buckets[le]
	}
	if decreased {
		return d, fmt.Errorf("%w have gone back: there are several replicas behind the address", errMetrics)
	}
	return d, nil
}

// quantile returns the bounds, in seconds, of the bucket that contains a quantile, and false if nothing was counted.
func (c histogram) quantile(q float64) (low, high float64, ok bool) {
	bounds := slices.Sorted(maps.Keys(c.buckets))
	for _, le := range bounds {
		if c.n > 0 && c.buckets[le] >= q*c.n {
			return low, le, true
		}
		low = le
	}
	return 0, 0, false
}

// scrape reads the server's metrics as they are now.
func (r *run) scrape(ctx context.Context, wanted series) (scrape, error) {
	answer, err := r.Ask(ctx, http.MethodGet, r.Client.Prefix+"/metrics", "", nil)
	if err != nil {
		return scrape{}, fmt.Errorf("%w: %w", errMetrics, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return scrape{}, fmt.Errorf("%w may not be read: GET /metrics has status %d", errMetrics, answer.StatusCode)
	}
	return parseMetrics(answer.Body, wanted)
}

// withServerMetrics calls do between two scrapes of the server's histograms, and adds their difference to the facts.
func (r *run) withServerMetrics(ctx context.Context, do func(context.Context) error) error {
	wanted, counted := seriesOf(r.Workload.Call)
	if !counted {
		return do(ctx)
	}
	before, err := r.scrape(ctx, wanted)
	if err != nil {
		r.serverFact("", err.Error())
		return do(ctx)
	}
	if err := do(ctx); err != nil {
		return err
	}
	after, err := r.scrape(ctx, wanted)
	if err != nil {
		r.serverFact("", err.Error())
		return nil
	}
	sli, whole, err := after.since(before)
	if err != nil {
		r.serverFact("", err.Error())
		return nil
	}
	r.serverFacts("sli", sli)
	r.serverFacts("whole", whole)
	return nil
}

// serverFacts adds a histogram to the facts: the count, the mean, and the bounds of the 99th percentile. The histogram
// includes the requests of others, and those of the warm-up.
func (r *run) serverFacts(name string, c histogram) {
	if c.n <= 0 {
		r.serverFact("."+name, "nothing was counted")
		return
	}
	text := fmt.Sprintf("%.0f requests, mean %.3g ms", c.n, 1e3*c.sum/c.n)
	if low, high, ok := c.quantile(0.99); ok {
		if math.IsInf(high, 1) {
			text += fmt.Sprintf(", p99 above %g ms", 1e3*low)
		} else {
			text += fmt.Sprintf(", p99 between %g and %g ms", 1e3*low, 1e3*high)
		}
	}
	r.serverFact("."+name, text)
}

func (r *run) serverFact(name, value string) { r.result.Facts["server"+name] = value }
