package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/all"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/image"
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
	f.StringSliceVar(&o.tools, "tools", nil, "programs of this machine to put in too, such as iperf3,fio")
	f.StringVar(&o.agent, "agent", "", "the agent's program (default: knotmeter-agent-linux-ARCH beside this program, else this program itself)")
}

func newImageBuild(s Streams) *cobra.Command {
	var o imageOptions
	var output, reference, arch string
	c := &cobra.Command{
		Use:   "build",
		Short: "Write the image as an archive that container runtimes import",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if output == "" {
				return errors.New("--output: name the file to write")
			}
			img, err := o.build(arch)
			if err != nil {
				return err
			}
			err = writeWhole(output, func(w io.Writer) error { return image.Write(w, reference, img) })
			if err != nil {
				return fmt.Errorf("--output: %w", err)
			}
			digest, err := img.Digest()
			if err != nil {
				return err
			}
			config, err := img.ConfigName()
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "wrote %s: %s for linux/%s\n  manifest %s\n  image ID %s\n", output, reference, arch, digest, config)
			return nil
		},
	}
	o.register(c)
	c.Flags().StringVarP(&output, "output", "o", "", "the file to write")
	c.Flags().StringVar(&reference, "name", all.AgentImage, "what the image is called")
	c.Flags().StringVar(&arch, "arch", runtime.GOARCH, "of the nodes: "+strings.Join(image.Architectures(), " or "))
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
			return o.push(c.Context(), s.Out, args[0], insecure)
		},
	}
	o.register(c)
	c.Flags().StringSliceVar(&o.arches, "arch", []string{runtime.GOARCH}, "of the nodes: "+strings.Join(image.Architectures(), ", ")+", or both")
	c.Flags().BoolVar(&insecure, "insecure", false, "the registry speaks HTTP, or its certificate is not to be checked")
	return c
}

func (o imageOptions) push(ctx context.Context, out io.Writer, reference string, insecure bool) error {
	if len(o.arches) > 1 && o.agent != "" {
		return errors.New("--agent is a program for one architecture; leave it out, or give one --arch")
	}
	images := map[string]image.Image{}
	for _, arch := range o.arches {
		img, err := o.build(arch)
		if err != nil {
			return err
		}
		images[arch] = img
	}
	pushed, err := image.Push(ctx, reference, images, insecure)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, pushed)
	return nil
}

// build makes the image for an architecture.
func (o imageOptions) build(arch string) (image.Image, error) {
	agent, err := o.agentFor(arch)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{remote.AgentPath: agent}
	if err := image.AddTools(files, arch, o.tools); err != nil {
		return nil, fmt.Errorf("--tools: %w", err)
	}
	return image.Build(image.Spec{Arch: arch, Files: files})
}

// agentFor finds the agent's program: what --agent names, else the one beside this program, else this program
// itself, which is one too.
func (o imageOptions) agentFor(arch string) ([]byte, error) {
	if o.agent != "" {
		text, err := os.ReadFile(o.agent)
		if err == nil {
			err = image.CheckAgent(text, arch)
		}
		if err != nil {
			return nil, fmt.Errorf("--agent: %s: %w", o.agent, err)
		}
		return text, nil
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	beside := filepath.Join(filepath.Dir(own), "knotmeter-agent-linux-"+arch)
	for _, file := range []string{beside, own} {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err = image.CheckAgent(text, arch); err == nil {
			return text, nil
		}
		if file == beside {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil, fmt.Errorf("there is no agent for linux/%s: neither %s nor this program itself is one; it comes from 'GOOS=linux GOARCH=%s CGO_ENABLED=0 go build -o %s ./cmd/knotmeter-agent', or give --agent",
		arch, beside, arch, beside)
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
