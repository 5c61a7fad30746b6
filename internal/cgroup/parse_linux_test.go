package cgroup

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

const hybrid = `23 0 254:0 / / rw,relatime - ext4 /dev/root rw
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
`

func mount(root, point string) machine.Mount { return machine.Mount{Root: root, Point: point} }

func TestFindMount(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want machine.Mount
	}{
		"hybrid":    {hybrid, mount("/", "/sys/fs/cgroup/unified")},
		"unified":   {"25 23 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n", mount("/", "/sys/fs/cgroup")},
		"container": {"25 23 0:22 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n", mount("/docker/1", "/sys/fs/cgroup")},
		"blank":     {`25 23 0:22 / /a\040b rw - cgroup2 cgroup2 rw`, mount("/", "/a b")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findMount(c.text)
			if err != nil || mount(got.Root, got.Point) != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	if _, err := findMount("1 2 3\nnonsense - cgroup2\n"); !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("without one: %v", err)
	}
}

func TestDir(t *testing.T) {
	all, part := mount("/", "/c"), mount("/docker/1", "/c")
	for _, c := range []struct {
		m           machine.Mount
		group, want string
	}{
		{all, "/", "/c"},
		{all, "/user.slice/s", "/c/user.slice/s"},
		{part, "/docker/1", "/c"},
		{part, "/docker/1/s", "/c/s"},
		{part, "/docker/10", "/c"},
		{all, "/../other", "/c"},
	} {
		if got := groupDir(c.m, c.group); got != c.want {
			t.Errorf("%v in %v: got %s, want %s", c.group, c.m, got, c.want)
		}
	}
}

func TestOwn(t *testing.T) {
	got, err := ownGroup("4:memory:/a\n0::/b/c\n")
	if got != "/b/c" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ownGroup("4:memory:/a\n"); !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("version 1 alone: %v", err)
	}
}

func FuzzFindMount(f *testing.F) {
	f.Add(hybrid, "/user.slice")
	f.Add(`25 23 0:22 /\134 /\ rw - cgroup2 x`, "/\\/..")
	f.Fuzz(func(t *testing.T, text, group string) {
		m, err := findMount(text)
		if err != nil {
			return
		}
		if dir := groupDir(m, group); !strings.HasPrefix(dir, path.Clean(m.Point)) && dir != m.Point {
			t.Errorf("%q in %+v is %q, outside", group, m, dir)
		}
	})
}
