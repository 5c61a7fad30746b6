package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Seal has experiment.json be vouched for by a key that is not in the directory, from now on: who has the key can tell
// that the plan is as this writer left it. What there is now is vouched for too.
func (w *Writer) Seal(key []byte) error {
	w.key = key
	if err := w.writeSeal(w.experiment); err != nil {
		return fmt.Errorf("seal the experiment: %w", err)
	}
	return nil
}

// writeSeal vouches for experiment.json as it is about to be, and as it is: a crash leaves one of them.
func (w *Writer) writeSeal(next []byte) error {
	if w.key == nil {
		return nil
	}
	text := seal(w.key, next) + "\n" + seal(w.key, w.experiment) + "\n"
	return w.replace(sealFile, []byte(text))
}

// seal is the proof that who has the key wrote an experiment.json.
func seal(key, experiment []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(ExperimentFile + "\x00")) // never fails
	mac.Write(experiment)
	return hex.EncodeToString(mac.Sum(nil))
}

// SealedBy reports whether who has the key wrote experiment.json as it was read.
func (r *Results) SealedBy(key []byte) bool {
	want := []byte(seal(key, r.experiment))
	return slices.ContainsFunc(strings.Fields(r.seals), func(s string) bool { return hmac.Equal([]byte(s), want) })
}

// SameExperiment reports whether experiment.json was the same when both were read.
func (r *Results) SameExperiment(other *Results) bool {
	return slices.Equal(r.experiment, other.experiment)
}

func (r *Results) readSeal(d dir) error {
	data, err := d.read(sealFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r.seals = string(data)
	return err
}
