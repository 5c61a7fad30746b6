package profile

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// open returns a sampler, or skips the test if this user may not sample.
func open(t *testing.T) *Sampler {
	t.Helper()
	s, err := Open()
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, errHidden) {
		t.Skipf("sampling takes CAP_PERFMON: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// sample returns the CPU seconds by layer while work runs, those of everything else on the machine included.
func sample(t *testing.T, work func()) map[Layer]float64 {
	t.Helper()
	s := open(t)
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	work()
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	layers := s.Seconds()
	if layers == nil {
		t.Fatal("samples were lost")
	}
	return layers
}

// processTime returns the CPU time of this process in seconds.
func processTime(t *testing.T) float64 {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// TestComputing checks that the time of a program that computes is counted as user space.
func TestComputing(t *testing.T) {
	before, after := 0.0, 0.0
	layers := sample(t, func() {
		before = processTime(t)
		for n, end := 0, time.Now().Add(1200*time.Millisecond); time.Now().Before(end); n++ {
		}
		after = processTime(t)
	})
	if got, want := layers[User], after-before; got < 0.9*want {
		t.Errorf("%.3f s in user space, of %.3f s that the test used: %v", got, want, layers)
	}
}

// TestOtherProgram checks that the time of another program is counted as its own, also in system calls.
func TestOtherProgram(t *testing.T) {
	busy := exec.Command("sh", "-c", "while :; do echo x >/dev/null; done")
	layers := sample(t, func() {
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		_ = busy.Process.Kill()
		_ = busy.Wait()
	})
	used := (busy.ProcessState.UserTime() + busy.ProcessState.SystemTime()).Seconds()
	if layers[Programs] < 0.8*used || layers[User] > 0.2*used {
		t.Errorf("%.2f s of other programs, of which one used %.2f s: %v", layers[Programs], used, layers)
	}
}

// TestLoopback checks that data over the loopback device pass TCP, IP and the receive path, and are copied.
func TestLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer l.Close()
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	layers := sample(t, func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for end := time.Now().Add(time.Second); time.Now().Before(end); {
			if _, err := c.Write(make([]byte, 1<<16)); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, layer := range []Layer{Copy, TCP, IP, SoftIRQ} {
		if layers[layer] == 0 {
			t.Errorf("nothing in %s: %v", layer, layers)
		}
	}
	t.Log(layers)
}

// TestCloseWhileSampling checks that a sampler may be closed while it samples.
func TestCloseWhileSampling(t *testing.T) {
	s := open(t)
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	s.Close()
	time.Sleep(drainEvery + 50*time.Millisecond)
	if err := s.End(); err != nil {
		t.Error(err)
	}
	s.Seconds()
}
