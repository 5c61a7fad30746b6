package netload

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("invalid specification")

// Validate returns an error that Is ErrConfig and names the field that is out of range.
func (c Config) Validate() error {
	w, err := c.Workload.Resolved()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrConfig, err)
	case w != c.Workload:
		return fmt.Errorf("%w: the workload %s has no defaults filled in", ErrConfig, c.Workload.Kind)
	case c.Role != Client && c.Role != Server:
		return fmt.Errorf("%w: there is no role %q", ErrConfig, c.Role)
	case c.Token == (Token{}):
		return fmt.Errorf("%w: there is no token", ErrConfig)
	case !c.Addr.IsValid(), c.Role == Client && c.Addr.Port() == 0:
		return fmt.Errorf("%w: the address %q is not one", ErrConfig, c.Addr)
	case w.Duration < Step:
		return fmt.Errorf("%w: a window of %s is shorter than %s", ErrConfig, w.Duration, Step)
	case c.Found < 0 || c.Found > Unpaced || c.Found > 0 && !w.Searches():
		return fmt.Errorf("%w: a found rate of %g for %s", ErrConfig, c.Found, w.Kind)
	case c.Idle < 0 || c.Idle > time.Minute:
		return fmt.Errorf("%w: an idle time of %s", ErrConfig, c.Idle)
	case w.Kind.Datagrams() && w.Size < MinDatagram:
		return fmt.Errorf("%w: datagrams of %d bytes can't carry the %d bytes of number and time",
			ErrConfig, w.Size, MinDatagram)
	case len(c.CPUs) > 1024:
		return fmt.Errorf("%w: %d CPUs", ErrConfig, len(c.CPUs))
	}
	for _, cpu := range c.CPUs {
		if cpu < 0 || cpu >= 1024 {
			return fmt.Errorf("%w: there is no CPU %d", ErrConfig, cpu)
		}
	}
	return nil
}

// Version returns this program's version and the compiler's, as recorded at build time.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = s.Value
		}
	}
	if version == "" {
		version = "(devel)"
	}
	return version + " " + info.GoVersion
}
