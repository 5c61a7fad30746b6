// Package architecture holds the tests that compare the code with imports.md: who may import whom, which imports have
// one door, and the rules of style that every package and page keeps. It has no code of its own.
package architecture
