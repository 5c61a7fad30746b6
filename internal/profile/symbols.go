package profile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

var (
	// errSymbols is wrapped by every error about the format of /proc/kallsyms.
	errSymbols = errors.New("not the text of /proc/kallsyms")
	// errHidden means that the file has no addresses, because this user may not see them.
	errHidden = errors.New("the kernel hides the addresses of its functions from this user")
)

// symbols holds the kernel's functions by address.
type symbols struct {
	addresses []uint64 // ascending
	names     []string
}

// parseSymbols parses /proc/kallsyms: an address, a type, a name, and for a module's symbol the module, in each line.
// Users who may not see the addresses get zeros.
func parseSymbols(r io.Reader) (*symbols, error) {
	type symbol struct {
		address uint64
		name    string
	}
	var list []symbol
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		address, rest, _ := strings.Cut(lines.Text(), " ")
		kind, name, ok := strings.Cut(rest, " ")
		value, err := strconv.ParseUint(address, 16, 64)
		if err != nil || !ok || name == "" {
			return nil, fmt.Errorf("%w: line %q", errSymbols, lines.Text())
		}
		if value == 0 || !strings.Contains("tTwW", kind) {
			continue // data, or a hidden address
		}
		name, _, _ = strings.Cut(name, "\t")
		list = append(list, symbol{value, name})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errSymbols, err)
	}
	if len(list) == 0 {
		return nil, errHidden
	}
	slices.SortStableFunc(list, func(a, b symbol) int {
		switch {
		case a.address < b.address:
			return -1
		case a.address > b.address:
			return 1
		}
		return 0
	})
	s := &symbols{make([]uint64, len(list)), make([]string, len(list))}
	for i, one := range list {
		s.addresses[i], s.names[i] = one.address, one.name
	}
	return s, nil
}

// name returns the function that contains an address, or "" if the address is below all functions.
func (s *symbols) name(address uint64) string {
	i, exact := slices.BinarySearch(s.addresses, address)
	if exact {
		return s.names[i]
	}
	if i == 0 {
		return ""
	}
	return s.names[i-1]
}

// baseName returns a function's name without the suffix of a part that the compiler split off: tcp_ack of
// tcp_ack.part.0.
func baseName(function string) string {
	function, _, _ = strings.Cut(function, ".")
	return function
}
