package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/image"
)

// suite is the Debian release of fio and its libraries.
const suite = "trixie"

// A deb is a Debian package.
type deb struct {
	name, version, arch string // arch is "all" for packages without programs
	image               string // architecture of the image with the package
	digest              string
	files               tree
}

// addFio adds fio, its libraries, and the copyright files of their packages to the files of an image. It returns these
// packages.
func addFio(ctx context.Context, files map[string][]byte, arch, snapshot string) ([]deb, error) {
	var packages []deb
	err := withTempDir(func(dir string) error {
		archives, err := download(ctx, dir, arch, snapshot, "fio")
		for _, at := range archives {
			p, unpackErr := unpack(ctx, at, arch)
			packages, err = append(packages, p), errors.Join(err, unpackErr)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return addProgram(packages, files, arch, "/usr/bin/fio")
}

// addProgram adds a program, its libraries, and the copyright files of their packages to files. It returns these
// packages.
func addProgram(packages []deb, files map[string][]byte, arch, program string) ([]deb, error) {
	installed := mergeTrees(packages)
	used := map[int]bool{}
	read := func(at string) ([]byte, error) {
		c, err := installed.find(at)
		if err == nil {
			used[c.owner] = true
		}
		return c.text, err
	}
	if err := image.AddProgram(files, arch, program, program, read); err != nil {
		return nil, err
	}
	var taken []deb
	for _, i := range slices.Sorted(maps.Keys(used)) {
		copyright := "/usr/share/doc/" + packages[i].name + "/copyright"
		c, err := installed.find(copyright)
		if err != nil {
			return nil, err
		}
		files[copyright] = c.text
		taken = append(taken, packages[i])
	}
	return taken, nil
}

// A tree has the files and links of packages by path, without the leading slash.
type tree map[string]content

// A content is the text of a file, or the target of a link.
type content struct {
	owner int // index of the package
	text  []byte
	link  string
}

// mergeTrees returns the tree of all packages. On current Debian, /lib and /lib64 are links into /usr.
func mergeTrees(packages []deb) tree {
	all := tree{"lib": {link: "usr/lib"}, "lib64": {link: "usr/lib64"}}
	for i, p := range packages {
		for name, c := range p.files {
			c.owner = i
			all[name] = c
		}
	}
	return all
}

// find returns the file at an absolute path and follows links.
func (t tree) find(at string) (content, error) {
	const maxLinks = 40 // the limit of Linux
	name := strings.TrimPrefix(path.Clean(at), "/")
	for range maxLinks {
		next, linked := t.follow(name)
		if !linked {
			c, found := t[name]
			if !found {
				return content{}, fmt.Errorf("%s: %w", at, fs.ErrNotExist)
			}
			return c, nil
		}
		name = next
	}
	return content{}, fmt.Errorf("%s: too many links", at)
}

// follow replaces the shortest prefix of a path that is a link; linked is false if there is none.
func (t tree) follow(name string) (next string, linked bool) {
	for end := 0; end < len(name); end++ {
		if i := strings.IndexByte(name[end:], '/'); i >= 0 {
			end += i
		} else {
			end = len(name)
		}
		link := t[name[:end]].link
		if path.IsAbs(link) {
			return strings.TrimPrefix(path.Join(link, name[end:]), "/"), true
		}
		if link != "" {
			return path.Join(path.Dir(name[:end]), link, name[end:]), true
		}
	}
	return name, false
}

// sources returns apt's sources.list: Debian's mirrors, or its archive as of the time snapshot.
func sources(snapshot string) string {
	const keyring = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
	main, security, options := "http://deb.debian.org/debian", "http://deb.debian.org/debian-security", keyring
	if snapshot != "" {
		const archive = "http://snapshot.debian.org/archive/"
		main, security = archive+"debian/"+snapshot, archive+"debian-security/"+snapshot
		options += " check-valid-until=no"
	}
	return fmt.Sprintf("deb [%s] %s %s main\ndeb [%s] %s %s-security main\n",
		options, main, suite, options, security, suite)
}

// aptConfig returns a configuration of apt that is independent of this machine except for Debian's keys: all state is
// in dir, and no package counts as installed.
func aptConfig(dir, arch string) string {
	return fmt.Sprintf(`Dir %q;
Dir::State "state";
Dir::State::status %q;
Dir::Cache "cache";
Dir::Etc::sourcelist %q;
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "/dev/null";
APT::Architecture %q;
APT::Architectures { %q; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Debug::NoLocking "true";
`, dir, filepath.Join(dir, "status"), filepath.Join(dir, "sources.list"), arch, arch)
}

// download lets apt fetch a package with its dependencies to dir and verify their signatures. It returns the paths of
// the archives.
func download(ctx context.Context, dir, arch, snapshot, name string) (archives []string, err error) {
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(dir, "apt.conf")
	for at, text := range map[string]string{
		config: aptConfig(dir, arch), filepath.Join(dir, "sources.list"): sources(snapshot), filepath.Join(dir, "status"): "",
	} {
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	for _, args := range [][]string{{"update", "-q"}, {"install", "-q", "-y", "--download-only", name}} {
		c := exec.CommandContext(ctx, "apt-get", args...)
		c.Env = append(os.Environ(), "APT_CONFIG="+config, "LC_ALL=C")
		if _, err := output(c); err != nil {
			return nil, fmt.Errorf("%w; packages come from Debian's archive, by apt-get and debian-archive-keyring", err)
		}
	}
	return filepath.Glob(filepath.Join(dir, "cache/archives/*.deb"))
}

// unpack reads the fields, files and links of a package.
func unpack(ctx context.Context, at, imageArch string) (deb, error) {
	whole, err := os.ReadFile(at)
	if err != nil {
		return deb{}, err
	}
	fields, err := output(exec.CommandContext(ctx, "dpkg-deb", "--show",
		"--showformat=${Package}\n${Version}\n${Architecture}", at))
	if err != nil {
		return deb{}, err
	}
	f := strings.Split(string(fields), "\n")
	p := deb{name: f[0], version: f[1], arch: f[2], image: imageArch, digest: digest(whole), files: tree{}}
	packed, err := output(exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", at))
	if err != nil {
		return deb{}, err
	}
	for t := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := t.Next()
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return deb{}, fmt.Errorf("%s: %w", at, err)
		}
		name := path.Clean(h.Name)
		switch {
		case h.Typeflag == tar.TypeSymlink:
			p.files[name] = content{link: h.Linkname}
		case h.Typeflag == tar.TypeReg:
			text, err := io.ReadAll(t)
			if err != nil {
				return deb{}, fmt.Errorf("%s: %w", at, err)
			}
			p.files[name] = content{text: text}
		}
	}
}
