package cluster

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// An account does not outlive the program by an hour, whatever ends the program. Kubernetes removes accounts and Roles
// by no clock, but Jobs it does, with all that they own: so the account, its Role and binding and the pods that have
// its token belong to a Job that starts no pod and has a deadline, which the program extends for as long as it runs.

// TermTime is how long an account is left without the program. With the token's own end and the garbage collector's
// work it stays below an hour.
const TermTime = 50 * time.Minute

// extensions are how often within that time the deadline is extended.
const extensions = 10

// A term is the time that an account has.
type term struct {
	jobs  batchclient.JobInterface
	job   *batchv1.Job // as it is asked for
	lasts time.Duration
	began time.Duration // by [machine.Uptime], as below
	until atomic.Int64  // nanoseconds, from which on it is not sure that the term goes on
	stop  func()
}

// newTerm begins the term of an account, and says who owns what the account consists of.
func newTerm(
	ctx context.Context, api kubernetes.Interface, h Home, lasts time.Duration, pod corev1.PodSpec,
) (*term, metav1.OwnerReference, error) {
	t := &term{jobs: api.BatchV1().Jobs(h.Namespace), job: termJob(h, pod), lasts: lasts, began: machine.Uptime()}
	job, err := t.prolong(ctx)
	if err != nil {
		return nil, metav1.OwnerReference{}, err
	}
	return t, metav1.OwnerReference{APIVersion: t.job.APIVersion, Kind: t.job.Kind, Name: job.Name, UID: job.UID}, nil
}

// termJob owns what the account consists of. It starts no pod, and is removed when its time is over.
func termJob(h Home, pod corev1.PodSpec) *batchv1.Job {
	j := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: h.name(), Namespace: h.Namespace,
			Labels: manifest.ExperimentLabels(h.Experiment)},
		Spec: batchv1.JobSpec{Parallelism: new(int32(0)), TTLSecondsAfterFinished: new(int32(0))},
	}
	j.Spec.Template.Spec = pod
	return j
}

// prolong puts the end of the term as far off as it may be. One request makes the Job or changes its deadline,
// whichever it takes.
func (t *term) prolong(ctx context.Context) (*batchv1.Job, error) {
	now := machine.Uptime()
	j := t.job.DeepCopy()
	j.Spec.ActiveDeadlineSeconds = new(int64((now - t.began + t.lasts).Seconds()))
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	job, err := t.jobs.Patch(ctx, j.Name, types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: manifest.ManagedBy})
	if err == nil {
		// The controller counts whole seconds by a clock of its own, so the end may be seen there before it is due here.
		t.until.Store(int64(now + t.lasts*4/5))
	}
	return job, err
}

// runs says whether the term surely goes on. An account that was not made has none, which does not end.
func (t *term) runs() bool { return t == nil || int64(machine.Uptime()) < t.until.Load() }

// extend has the term go on until end is called. A request that fails is made up for by the next.
func (t *term) extend() {
	t.stop = Every(t.lasts/extensions, func(ctx context.Context) {
		if t.runs() { // else another account is made for the next run
			_, _ = t.prolong(ctx)
		}
	})
}

// end lets the term run out.
func (t *term) end() {
	if t != nil {
		t.stop()
	}
}
