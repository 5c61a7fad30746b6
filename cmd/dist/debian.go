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

// suite is the release of Debian that fio and its libraries are taken from.
const suite = "trixie"

// A deb is a package of Debian.
type deb struct {
	name, version, arch string // arch is "all" for some
	image               string // the architecture of the image that it is in
	digest              string
	files               tree
}

// addFio adds fio and the libraries that it needs to the files of an image, with the copyrights of the packages that
// they come from, which it returns.
func addFio(ctx context.Context, files map[string][]byte, arch, snapshot string) ([]deb, error) {
	var packages []deb
	err := scratch(func(dir string) error {
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
	return addFrom(packages, files, arch, "/usr/bin/fio")
}

// addFrom adds a program from packages to files, and returns the packages that something was taken from.
func addFrom(packages []deb, files map[string][]byte, arch, program string) ([]deb, error) {
	installed := install(packages)
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

// A tree is the files and links of packages by path, without the leading slash.
type tree map[string]content

// A content is that of a file, or what a link leads to.
type content struct {
	owner int // the index of its package
	text  []byte
	link  string
}

// install is the tree of all packages. Since Debian merged them, /lib and /lib64 are links into /usr.
func install(packages []deb) tree {
	all := tree{"lib": {link: "usr/lib"}, "lib64": {link: "usr/lib64"}}
	for i, p := range packages {
		for name, c := range p.files {
			c.owner = i
			all[name] = c
		}
	}
	return all
}

// find follows links to a file.
func (t tree) find(at string) (content, error) {
	const most = 40 // as many links as Linux follows
	name := strings.TrimPrefix(path.Clean(at), "/")
	for range most {
		next, linked := t.follow(name)
		if !linked {
			c, is := t[name]
			if !is {
				return content{}, fmt.Errorf("%s: %w", at, fs.ErrNotExist)
			}
			return c, nil
		}
		name = next
	}
	return content{}, fmt.Errorf("%s: too many links", at)
}

// follow replaces the first part of a path that is a link.
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

// sources are what apt reads packages from: Debian's mirrors, or its archive as it was at a time.
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

// settings are those of an apt that knows nothing of this machine but Debian's keys: everything is in dir, and nothing
// is installed.
func settings(dir, arch string) string {
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

// download has apt fetch a package with all that it depends on, check the signatures, and leave the archives in dir.
func download(ctx context.Context, dir, arch, snapshot, name string) (archives []string, err error) {
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(dir, "apt.conf")
	for at, text := range map[string]string{
		config: settings(dir, arch), filepath.Join(dir, "sources.list"): sources(snapshot), filepath.Join(dir, "status"): "",
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

// unpack reads a package: what it is, its libraries and programs, and its copyright.
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
