package chart

// At is where a relative change stands on the axis, in percent of its width; what is outside is put
// at the edge. Other drawings of the same plot than [Forest.Row] use it.
func (f Forest) At(change float64) float64 { return f.at(change) }

// Ticks are the round changes that the axis is labelled with, as fractions; zero is among them.
func (f Forest) Ticks() []float64 { return f.ticks() }

// Outside says whether a relative change is beyond an end of the axis, or has no bound.
func (f Forest) Outside(change float64) bool {
	l := logChange(change)
	return l < f.scale.Lo || l > f.scale.Hi
}
