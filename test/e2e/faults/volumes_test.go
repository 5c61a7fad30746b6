//go:build linux

package faults

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// newVolumes returns an experiment on storage in its own namespace, and skips the test without the test cluster's
// classes.
func newVolumes(t *testing.T, options string) *experiment {
	t.Helper()
	s := newExperiment(t, newTestbed(t))
	_, err := s.StorageV1().StorageClasses().Get(t.Context(), "loop-ext4", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Skipf("the cluster has not the test cluster's classes of volumes: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.options, s.alone = options, true
	s.namespace = s.testbed.namespace(t, "restricted")
	if there := s.volumesLeft(); len(there) > 0 {
		t.Fatalf("before the test there is %v", there)
	}
	return s
}

// claim waits at most 2 minutes for a bound claim of the experiment that is not one of others.
func (s *experiment) claim(r *running, others ...string) *corev1.PersistentVolumeClaim {
	s.Helper()
	var found *corev1.PersistentVolumeClaim
	eventually(s, "a claim that is bound\n"+r.String(), 2*time.Minute, func() bool {
		claims, err := s.CoreV1().PersistentVolumeClaims(s.namespace).List(context.Background(),
			metav1.ListOptions{LabelSelector: e2e.Managed})
		if err != nil {
			return false
		}
		i := slices.IndexFunc(claims.Items, func(c corev1.PersistentVolumeClaim) bool {
			return c.Status.Phase == corev1.ClaimBound && !slices.Contains(others, c.Name)
		})
		if i >= 0 {
			found = &claims.Items[i]
		}
		return i >= 0 || r.ended()
	})
	if found == nil {
		s.Fatalf("it ended before there was a claim:\n%s", r)
	}
	return found
}

// awaitFio waits at most 2 minutes until fio runs in a pod of the experiment.
func (s *experiment) awaitFio(r *running) {
	s.Helper()
	eventually(s, "fio at work\n"+r.String(), 2*time.Minute, func() bool {
		uids := s.podUIDs()
		names, err := filepath.Glob("/proc/[0-9]*/comm")
		return r.ended() || err == nil && slices.ContainsFunc(names, func(file string) bool {
			name, _ := os.ReadFile(file)
			groups, _ := os.ReadFile(filepath.Dir(file) + "/cgroup")
			return string(name) == "fio\n" && slices.ContainsFunc(uids,
				func(uid string) bool { return strings.Contains(string(groups), uid) })
		})
	})
	if r.ended() {
		s.Fatalf("it ended before fio was at work:\n%s", r)
	}
}

// volumesLeft lists the test cluster's volumes, and the files of their devices.
func (s *experiment) volumesLeft() []string {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.testbed.Kubeconfig), "volumes", "*"))
	s.expect(err)
	volumes, err := s.CoreV1().PersistentVolumes().List(context.Background(), metav1.ListOptions{})
	s.expect(err)
	for _, v := range volumes.Items {
		files = append(files, "volume "+v.Name)
	}
	return files
}

// noVolumes checks that nothing of the experiment is left, and no volume or file of one.
func (s *experiment) noVolumes() {
	s.Helper()
	s.nothingLeft()
	eventually(s, "no volumes", time.Minute, func() bool { return len(s.volumesLeft()) == 0 })
	if left := s.volumesLeft(); len(left) > 0 {
		s.Errorf("left: %v", left)
	}
}

// TestVolumeTruth measures a device that the kernel limits to 500 operations and 50 MB per second. The queues are
// short, because fio does not count requests in flight at the ends of the window: 64 of 2500 would be 2.6 %. No run may
// be more than 3 % faster; on a busy machine some may be slower, but not all of them.
func TestVolumeTruth(t *testing.T) {
	const iops, rate, blocks = 500, 50e6, 3
	for name, test := range map[string]struct{ options, rate, throughput string }{
		"ext4":  {"storage-class=loop-ext4&size=128Mi&volume=reuse", "randread-4k-qd8", "write-1m-qd4"},
		"block": {"storage-class=loop-ext4&size=128Mi&volume=reuse&volume-mode=block", "randwrite-4k-qd8", "read-1m-qd4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newVolumes(t, test.options)
			e2e.NeedParts(t)
			r := s.measure("--case", "storage/"+test.rate, "--case", "storage/"+test.throughput, "--blocks",
				strconv.Itoa(blocks), "--duration", "5s", "--warmup", "1s")
			claim := s.claim(r)
			if out, err := e2e.Command(s.Kubeconfig, "throttle", claim.Name, "-n", s.namespace, "-iops", "500", "-bps",
				"50M").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if status := s.end(r); status != 0 {
				t.Errorf("status %d:\n%s", status, r)
			}
			want := map[string]float64{"rate": iops, "throughput": 8 * rate}
			best := map[string]float64{}
			for _, run := range s.runs() {
				metric := "rate"
				if strings.Contains(run.Case, "-1m-") {
					metric = "throughput"
				}
				got, ok := run.Value(metric)
				off := got.Number/want[metric] - 1
				t.Logf("%s: %s %+.2f %%", run.Case, metric, 100*off)
				if !ok || !run.Valid() || off > 0.03 {
					t.Errorf("%s: %s is %g and should be %g: %v", run.Case, metric, got.Number, want[metric], run.Invalid)
				}
				best[metric] = max(best[metric], got.Number)
			}
			for metric, number := range want {
				if best[metric] < 0.97*number {
					t.Errorf("%s is %g at best and should be %g", metric, best[metric], number)
				}
			}
			s.checkComplete(nil, blocks)
			s.noVolumes()
		})
	}
}

// TestVolumeKill checks that a program that is killed while fio runs leaves a claim, which clean removes, with its
// volume and the device below it.
func TestVolumeKill(t *testing.T) {
	s := newVolumes(t, "storage-class=loop-xfs&size=300Mi")
	r := s.measure("--case", "storage/randread-4k-qd64", "--blocks", "1", "--duration", "60s")
	s.claim(r)
	s.awaitFio(r)
	s.expect(r.Process.Kill())
	<-r.exited
	if left := s.left(t); !slices.ContainsFunc(left, func(name string) bool { return strings.HasPrefix(name, "claim ") }) {
		t.Errorf("it was killed, and only this is left: %v", left)
	}
	c := s.start("clean", "--all", "--yes", "--target", s.target())
	if status := s.end(c); status != 0 || !strings.Contains(c.String(), "removed claim "+s.namespace+"/knotmeter-") {
		t.Errorf("clean: status %d\n%s", status, c)
	}
	s.noVolumes()
}

// TestVolumeTakenAway checks that a volume that something else removes makes its run invalid, with that reason; the
// experiment completes.
func TestVolumeTakenAway(t *testing.T) {
	s := newVolumes(t, "storage-class=loop-ext4&size=128Mi")
	r := s.measure("--case", "storage/randread-4k-qd64", "--blocks", "1", "--duration", "5s")
	claim := s.claim(r)
	s.awaitFio(r)
	gone := []byte(`{"metadata":{"finalizers":null}}`)
	claims, volumes, ctx := s.CoreV1().PersistentVolumeClaims(s.namespace), s.CoreV1().PersistentVolumes(),
		context.Background()
	s.expect(claims.Delete(ctx, claim.Name, metav1.DeleteOptions{}))
	_, err := claims.Patch(ctx, claim.Name, types.MergePatchType, gone, metav1.PatchOptions{})
	s.expect(err)
	_ = volumes.Delete(ctx, claim.Spec.VolumeName, metav1.DeleteOptions{}) // the provisioner may have been first
	if status := s.end(r); status != 0 {
		t.Errorf("status %d:\n%s", status, r)
	}
	runs := s.runs()
	i := slices.IndexFunc(runs, func(r result.Run) bool { return !r.Valid() })
	if i < 0 || !strings.Contains(result.Joined(runs[i].Invalid),
		"the claim "+claim.Name+" was removed by something else") {
		t.Errorf("no run is invalid for want of its volume: %+v\n%s", runs, r)
	}
	s.checkComplete(nil, 1)
	s.noVolumes()
}
