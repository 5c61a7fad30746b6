// Package machine has the facts of the machine that this process runs on.
//
// Those who say where something was measured, the lab and the agents that meet, take them from here and put them beside
// their own: all of it is text for result, and result.Unknown where the machine does not tell.
package machine
