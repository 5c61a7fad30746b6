package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/image"
	"github.com/knotmeter/knotmeter/internal/registry"
)

// imageOptions are the flags of image build and image push.
type imageOptions struct {
	arches, tools []string
	agent         string
}

func newImage(s Streams) *cobra.Command {
	c := parentCommand(&cobra.Command{
		Use:   "image",
		Short: "Build the agent's container image, or push it to a registry",
		Long: `Build the image that pods on a cluster start from: the agent, and other tools
if you name them. It needs no Docker. The same content gives the same digest.`,
	})
	c.AddCommand(newImageBuild(s), newImagePush(s))
	return c
}

func (o *imageOptions) register(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.arches, "arch", []string{runtime.GOARCH},
		"`ARCH,…` architectures of the nodes: "+strings.Join(image.Architectures, ", ")+", or both")
	f.StringSliceVar(&o.tools, "tools", nil, "`PROGRAM,…` programs of this machine to add, such as iperf3,fio")
	f.StringVar(&o.agent, "agent", "",
		"`FILE` agent program (default: knotmeter-agent-linux-ARCH next to this program, or this program)")
}

func newImageBuild(s Streams) *cobra.Command {
	var o imageOptions
	var out, reference string
	c := &cobra.Command{
		Use:   "build",
		Short: "Write the image as an archive that container runtimes import",
		Long: `Write the image as an archive that container runtimes import: for one architecture
in the format of docker save, for several as an OCI layout with one index.`,
		Example: `  knotmeter image build --out agent.tar
  knotmeter image build --out agent.tar --tools fio --arch amd64,arm64`,
		Args: operands(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" {
				return errors.New("--out: name the file to write, such as agent.tar")
			}
			images, err := o.build(c.Context(), s.Out)
			if err != nil {
				return err
			}
			err = writeAtomic(out, func(w io.Writer) error { return image.Write(w, reference, images) })
			if err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			digest, err := image.Digest(images)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "wrote %s: %s@%s\n", out, reference, digest)
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "`FILE` archive to write")
	c.Flags().StringVar(&reference, "name", registry.AgentImage, "`NAME` name of the image")
	o.register(c)
	return c
}

func newImagePush(s Streams) *cobra.Command {
	var o imageOptions
	var archive string
	var insecure bool
	c := &cobra.Command{
		Use:   "push REFERENCE",
		Short: "Build the image and push it to a registry",
		Long: `Build the image, or read it from an archive, and push it to a registry, with the
credentials that docker login or podman login stored. What it prints goes into the
target: kube:?image=REFERENCE@sha256:…`,
		Example:           `  knotmeter image push registry.example/knotmeter-agent:1`,
		Args:              operands(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			push := func(images map[string]image.Image, err error) error {
				if err != nil {
					return err
				}
				pushed, err := image.Push(c.Context(), args[0], images, insecure)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(s.Out, pushed)
				return err
			}
			if archive == "" {
				return push(o.build(c.Context(), s.Err))
			}
			dir, err := os.MkdirTemp("", "knotmeter-image-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			return push(image.Read(archive, dir))
		},
	}
	o.register(c)
	c.Flags().BoolVar(&insecure, "insecure", false, "allow plain HTTP, and do not check the registry's certificate")
	c.Flags().StringVar(&archive, "archive", "", "`FILE` archive of a release or of 'image build' to push instead")
	for _, built := range []string{"arch", "tools", "agent"} {
		c.MarkFlagsMutuallyExclusive("archive", built)
	}
	return c
}

// build builds an image for each architecture and prints a line about it.
func (o imageOptions) build(ctx context.Context, out io.Writer) (map[string]image.Image, error) {
	if len(o.arches) > 1 && o.agent != "" {
		return nil, errors.New("--agent: it is a program for one architecture; leave it out, or give one --arch")
	}
	if len(o.arches) == 0 {
		return nil, errors.New("--arch: name an architecture")
	}
	images := map[string]image.Image{}
	for _, arch := range o.arches {
		agent, err := await(ctx, func() ([]byte, error) { return o.agentFor(arch) })
		if err != nil {
			return nil, err
		}
		files := map[string][]byte{remote.AgentPath: agent}
		if err := image.AddTools(files, arch, o.tools); err != nil {
			return nil, fmt.Errorf("--tools: %w", err)
		}
		img, err := image.Build(image.Spec{Arch: arch, Files: files})
		if err != nil {
			return nil, err
		}
		if err := describe(out, arch, len(agent), img); err != nil {
			return nil, err
		}
		images[arch] = img
	}
	return images, nil
}

// describe prints a line about an image.
func describe(out io.Writer, arch string, agent int, img image.Image) error {
	id, err := img.ConfigName()
	if err != nil {
		return err
	}
	packed, err := image.CompressedSize(img)
	if err != nil {
		return err
	}
	const mega = 1e6
	fmt.Fprintf(out, "linux/%s: agent %.1f MB, image %.1f MB packed, image ID %s\n",
		arch, float64(agent)/mega, float64(packed)/mega, id)
	return nil
}

// agentFor returns the agent program for an architecture: the file of --agent, else the installed one.
func (o imageOptions) agentFor(arch string) ([]byte, error) {
	if o.agent == "" {
		text, err := image.Agent(arch)
		if err != nil {
			return nil, fmt.Errorf("%w; or give --agent", err)
		}
		return text, nil
	}
	text, err := image.AgentFrom(o.agent, arch)
	if err != nil {
		return nil, fmt.Errorf("--agent: %w", err)
	}
	return text, nil
}

// writeAtomic writes a file under a temporary name and renames it, so that an interrupted write leaves no file.
func writeAtomic(file string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
