// Package architecture tests the code against imports.md, which lists the allowed imports of each package, and against
// the rules of style for code and pages. It has no code of its own.
package architecture
