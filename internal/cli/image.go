package cli

import (
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
	c := &cobra.Command{
		Use:   "image",
		Short: "Make the agent's container image for clusters, or send it to a registry",
		Long: `Make the image that pods on a cluster are started from: the agent, and other tools
if they are asked for, without Docker. The same content gives the same digest.`,
	}
	c.AddCommand(newImageBuild(s), newImagePush(s))
	return c
}

func (o *imageOptions) register(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.arches, "arch", []string{runtime.GOARCH},
		"of the nodes: "+strings.Join(image.Architectures, ", ")+", or both")
	f.StringSliceVar(&o.tools, "tools", nil, "programs of this machine to put in too, such as iperf3,fio")
	f.StringVar(&o.agent, "agent", "",
		"the agent's program (default: knotmeter-agent-linux-ARCH beside this program, else this program itself)")
}

func newImageBuild(s Streams) *cobra.Command {
	var o imageOptions
	var output, reference string
	c := &cobra.Command{
		Use:   "build",
		Short: "Write the image as an archive that container runtimes import",
		Long: `Write the image as an archive that container runtimes import: for one architecture
as docker save does, for several as an OCI layout with one index.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if output == "" {
				return errors.New("--output: name the file to write")
			}
			images, err := o.build(s.Out)
			if err != nil {
				return err
			}
			err = writeWhole(output, func(w io.Writer) error { return image.Write(w, reference, images) })
			if err != nil {
				return fmt.Errorf("--output: %w", err)
			}
			digest, err := image.Digest(images)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "wrote %s: %s@%s\n", output, reference, digest)
			return nil
		},
	}
	o.register(c)
	c.Flags().StringVarP(&output, "output", "o", "", "the file to write")
	c.Flags().StringVar(&reference, "name", registry.AgentImage, "what the image is called")
	return c
}

func newImagePush(s Streams) *cobra.Command {
	var o imageOptions
	var insecure bool
	c := &cobra.Command{
		Use:   "push REFERENCE",
		Short: "Make the image and send it to a registry",
		Long: `Make the image and send it to a registry, with the credentials that docker login or
podman login has stored. What it prints goes into the target: kube:?image=REFERENCE@sha256:…`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			images, err := o.build(s.Err)
			if err != nil {
				return err
			}
			pushed, err := image.Push(c.Context(), args[0], images, insecure)
			if err != nil {
				return err
			}
			fmt.Fprintln(s.Out, pushed)
			return nil
		},
	}
	o.register(c)
	c.Flags().BoolVar(&insecure, "insecure", false, "allow plain HTTP, and do not check the certificate of the registry")
	return c
}

// build makes the images, by architecture, and says what is in them.
func (o imageOptions) build(out io.Writer) (map[string]image.Image, error) {
	if len(o.arches) > 1 && o.agent != "" {
		return nil, errors.New("--agent is a program for one architecture; leave it out, or give one --arch")
	}
	if len(o.arches) == 0 {
		return nil, errors.New("--arch: name an architecture")
	}
	images := map[string]image.Image{}
	for _, arch := range o.arches {
		agent, err := o.agentFor(arch)
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
	packed, err := image.Packed(img)
	if err != nil {
		return err
	}
	const mega = 1e6
	fmt.Fprintf(out, "linux/%s: agent %.1f MB, image %.1f MB packed, image ID %s\n",
		arch, float64(agent)/mega, float64(packed)/mega, id)
	return nil
}

// agentFor is the agent's program: what --agent names, else the one that is found.
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

// writeWhole writes a file under another name first, so that an interrupted write leaves none.
func writeWhole(file string, write func(io.Writer) error) error {
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
