package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"slices"
	"time"
)

// An entry is a file in an archive.
type entry struct {
	name string
	mode int64
	text []byte
}

// modified is the modification time of all files in archives: the earliest that all archive formats can store.
var modified = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// archive returns a compressed tar archive with the entries in the directory top. It has files only, because kubectl's
// plugin manager rejects links.
func archive(top string, entries []entry) ([]byte, error) {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	var b bytes.Buffer
	packed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(packed)
	for _, e := range sorted {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: top + "/" + e.name, Size: int64(len(e.text)), Mode: e.mode,
			ModTime: modified, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.text); err != nil {
			return nil, err
		}
	}
	err = errors.Join(t.Close(), packed.Close())
	return b.Bytes(), err
}
