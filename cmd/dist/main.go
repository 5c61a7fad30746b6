// Command dist makes the files of a release: the program in an archive for each platform, the agent's image with and
// without fio, a bill of materials, the manifest of the kubectl plugin, and checksums. The same sources, version, Go
// and Debian packages make the same bytes, in any directory, at any time.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	version := flags.String("version", "", "version that the program reports and the files are named by")
	output := flags.String("o", "dist", "directory to write the files to")
	snapshot := flags.String("snapshot", "", "take Debian's packages as of this time, such as 20261123T000000Z")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || flags.NArg() > 0 {
		return errors.New("usage: dist -version VERSION [-o DIR] [-snapshot TIME], in the root of the module")
	}
	files, err := release{source: ".", version: *version, snapshot: *snapshot}.build(ctx)
	if err != nil {
		return err
	}
	return write(*output, files)
}

// write writes the files of a release to a directory, and prints their sizes in MB.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return err
		}
		fmt.Printf("%9.1f MB  %s\n", float64(len(files[name]))/1e6, filepath.Join(dir, name))
	}
	return nil
}

// checksumsFile is the name of the file with the checksums of the others.
const checksumsFile = "SHA256SUMS"

// checksums returns the checksums of files in the format of sha256sum.
func checksums(files map[string][]byte) []byte {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s  %s\n", digest(files[name]), name)
	}
	return []byte(b.String())
}

func digest(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
