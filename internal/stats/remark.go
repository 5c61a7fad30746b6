package stats

// A Remark is a caveat about an estimate: its kind, and the numbers that its sentence needs.
type Remark struct {
	Kind   RemarkKind
	Count  int // of the pairs, differences or values that the kind names
	Of     int // all of them, or the size of the second sample
	Needed int // the number at which the interval has ends, in each sample
}

// A RemarkKind identifies what a remark is about.
type RemarkKind string

// The kinds of remarks.
const (
	NotFinite        RemarkKind = "not-finite-values" // Count of Of values are left out
	NoPairs          RemarkKind = "no-pairs"
	EmptySample      RemarkKind = "empty-sample"
	PastLastLook     RemarkKind = "past-last-look"    // Count pairs, but the last look is after Of
	NeverBounded     RemarkKind = "never-bounded"     // Count pairs, and no look gives the interval an end
	Unbounded        RemarkKind = "unbounded"         // Count pairs; it takes Needed
	UnboundedSamples RemarkKind = "unbounded-samples" // Count and Of values; it takes Needed in each sample
	AllSame          RemarkKind = "all-same"          // Count differences are the same number
	ManyZeros        RemarkKind = "many-zeros"        // Count of Of differences are exactly 0
)

func (e *Estimate) remark(r Remark) { e.Remarks = append(e.Remarks, r) }
