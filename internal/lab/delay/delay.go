// Package delay carries Ethernet frames between two descriptors and lets each wait a known time on
// its way. It is one of the doors to the kernel under the lab: with it an underlay has a latency
// that is known, so that what is measured can be compared with a truth.
package delay

// MaxFrame is the longest frame that is carried, in bytes: an MTU of 65535 and its header.
const MaxFrame = 65535 + 18
