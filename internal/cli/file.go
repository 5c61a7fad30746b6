package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

const (
	fileAPIVersion = "knotmeter/v1"
	fileKind       = "Experiment"
)

// An experimentFile is the content of an experiment file: a field for each of the [settings] that has one, and a
// section for the options of Kubernetes targets. The tag flag names the flag that a field stands for; a test compares
// the fields with the tables of flags and options.
type experimentFile struct {
	APIVersion  string            `json:"apiVersion"`
	Kind        string            `json:"kind"`
	Targets     []fileTarget      `json:"targets" flag:"target"`
	Baseline    string            `json:"baseline" flag:"baseline"`
	Suite       commaList         `json:"suite" flag:"suite"`
	Cases       []string          `json:"cases" flag:"case"`
	Primaries   []string          `json:"primaries" flag:"primary"`
	Restore     string            `json:"restore" flag:"restore"`
	SwitchLimit string            `json:"switchLimit" flag:"switch-limit"`
	Metric      string            `json:"metric" flag:"metric"`
	Tool        string            `json:"tool" flag:"tool"`
	Duration    string            `json:"duration" flag:"duration"`
	Warmup      string            `json:"warmup" flag:"warmup"`
	Rate        float64           `json:"rate" flag:"rate"`
	Clients     int               `json:"clients" flag:"clients"`
	MaxRate     string            `json:"maxRate" flag:"max-rate"`
	Blocks      int               `json:"blocks" flag:"blocks"`
	Looks       []int             `json:"looks" flag:"looks"`
	Budget      string            `json:"budget" flag:"budget"`
	Delta       any               `json:"delta" flag:"delta"` // 0.02 or "2%"
	Alpha       any               `json:"alpha" flag:"alpha"` // likewise
	AllPairs    bool              `json:"allPairs" flag:"all-pairs"`
	Parallel    bool              `json:"parallel" flag:"parallel"`
	Seed        *uint64           `json:"seed" flag:"seed"` // 0 is a seed; nil is none
	Gates       []string          `json:"gates" flag:"gate"`
	Out         string            `json:"out" flag:"out"`
	References  []string          `json:"references" flag:"reference"`
	Matches     []string          `json:"matches" flag:"match"`
	Prices      []string          `json:"prices" flag:"price"`
	Facts       []string          `json:"facts" flag:"fact"`
	Kubernetes  kubernetesSection `json:"kubernetes"`
}

// A kubernetesSection has the options of Kubernetes targets, for all of an experiment.
type kubernetesSection struct {
	Namespace             string          `json:"namespace" flag:"namespace"`
	Inject                bool            `json:"inject" flag:"inject"`
	RotateNodes           bool            `json:"rotateNodes" flag:"rotate-nodes"`
	Profile               bool            `json:"profile" flag:"profile"`
	Pods                  json.RawMessage `json:"pods" flag:"config"`
	Kubeconfig            string          `json:"kubeconfig" flag:"kubeconfig"`
	Context               string          `json:"context" flag:"context"`
	Cluster               string          `json:"cluster" flag:"cluster"`
	User                  string          `json:"user" flag:"user"`
	As                    string          `json:"as" flag:"as"`
	AsGroups              []string        `json:"asGroups" flag:"as-group"`
	AsUID                 string          `json:"asUID" flag:"as-uid"`
	Server                string          `json:"server" flag:"server"`
	TLSServerName         string          `json:"tlsServerName" flag:"tls-server-name"`
	CertificateAuthority  string          `json:"certificateAuthority" flag:"certificate-authority"`
	InsecureSkipTLSVerify bool            `json:"insecureSkipTLSVerify" flag:"insecure-skip-tls-verify"`
	ClientCertificate     string          `json:"clientCertificate" flag:"client-certificate"`
	ClientKey             string          `json:"clientKey" flag:"client-key"`
	DisableCompression    bool            `json:"disableCompression" flag:"disable-compression"`
	RequestTimeout        string          `json:"requestTimeout" flag:"request-timeout"`
}

// readFile reads the experiment file and applies it. Without --file it does nothing.
func (o *options) readFile(ctx context.Context) error {
	if o.file == "" {
		return nil
	}
	data, err := await(ctx, func() ([]byte, error) { return userfile.Read(o.file, userfile.Limit) })
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	var file experimentFile
	err = userfile.Decode(data, &file)
	if err == nil {
		err = o.apply(file)
	}
	if err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	return nil
}

// apply sets the flags that are not on the command line to the values of an experiment file.
func (o *options) apply(file experimentFile) error {
	if file.APIVersion != fileAPIVersion || file.Kind != fileKind {
		return fmt.Errorf("want apiVersion: %s and kind: %s", fileAPIVersion, fileKind)
	}
	if !o.flags.Changed(targetFlag) {
		o.fileTargets = file.Targets
	}
	o.fileRestores = !o.flags.Changed("restore")
	if err := setFlags(o.flags, reflect.ValueOf(file)); err != nil {
		return err
	}
	kube, err := registry.FindKind("kube")
	if err == nil {
		err = errors.Join(setFlags(o.flags, reflect.ValueOf(file.Kubernetes)), o.kinds.setDocuments(kube, file.Kubernetes))
	}
	if err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	return nil
}

// setFlags sets the flags that are not on the command line to the values of a struct, whose tags name the flags.
func setFlags(flags *pflag.FlagSet, fields reflect.Value) error {
	// --blocks replaces the file's looks, and --looks its blocks.
	replaced := map[string]bool{"looks": flags.Changed("blocks"), "blocks": flags.Changed("looks")}
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		name := tag.Get("flag")
		if name == "" || flags.Lookup(name) == nil || flags.Changed(name) || replaced[name] || fields.Field(i).IsZero() {
			continue
		}
		if err := setFlag(flags, name, fields.Field(i)); err != nil {
			return fmt.Errorf("%s: %w", tag.Get("json"), err)
		}
	}
	return nil
}

func setFlag(flags *pflag.FlagSet, name string, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if err := flags.Set(name, fmt.Sprint(v.Index(i).Interface())); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return flags.Set(name, fmt.Sprint(v.Interface()))
}
