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

// An account must expire within an hour after the program ends, however it ends. Kubernetes removes no account or Role
// by time, but it removes Jobs at their deadline with all objects they own. So a Job that starts no pod owns the
// account, its Role, its binding and the pods with its token, and the program extends the deadline while it runs.

// TermTime is how long an account outlives the program. With the delay of the garbage collector, the total stays below
// an hour. The token becomes invalid with the account.
const TermTime = 50 * time.Minute

// extensions is the number of times that the deadline is extended within one term.
const extensions = 10

// A term is the lifetime of an account, given by the deadline of its Job.
type term struct {
	jobs       batchclient.JobInterface
	job        *batchv1.Job // as applied
	duration   time.Duration
	began      time.Duration // by [machine.Uptime]
	validUntil atomic.Int64  // end of the certain validity, in nanoseconds of [machine.Uptime]
	stop       func()
}

// newTerm creates the Job of an account, and returns the reference to it as the owner of the account's objects.
func newTerm(
	ctx context.Context, api kubernetes.Interface, h AccountSpec, duration time.Duration, pod corev1.PodSpec,
) (*term, metav1.OwnerReference, error) {
	t := &term{jobs: api.BatchV1().Jobs(h.Namespace), job: termJob(h, pod), duration: duration, began: machine.Uptime()}
	job, err := t.prolong(ctx)
	if err != nil {
		return nil, metav1.OwnerReference{}, err
	}
	return t, metav1.OwnerReference{APIVersion: t.job.APIVersion, Kind: t.job.Kind, Name: job.Name, UID: job.UID}, nil
}

// termJob returns the Job that owns the account's objects. The Job starts no pod, and is removed once its deadline has
// passed.
func termJob(h AccountSpec, pod corev1.PodSpec) *batchv1.Job {
	j := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: h.name(), Namespace: h.Namespace,
			Labels: manifest.ExperimentLabels(h.Experiment)},
		Spec: batchv1.JobSpec{Parallelism: new(int32(0)), TTLSecondsAfterFinished: new(int32(0))},
	}
	j.Spec.Template.Spec = pod
	return j
}

// prolong moves the deadline to one term from now. A single apply request creates or changes the Job.
func (t *term) prolong(ctx context.Context) (*batchv1.Job, error) {
	now := machine.Uptime()
	j := t.job.DeepCopy()
	j.Spec.ActiveDeadlineSeconds = new(int64((now - t.began + t.duration).Seconds()))
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	job, err := t.jobs.Patch(ctx, j.Name, types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: manifest.ManagedBy})
	if err == nil {
		// The controller counts whole seconds by its own clock and may end the Job early, so a fifth is kept as a
		// margin.
		t.validUntil.Store(int64(now + t.duration*4/5))
	}
	return job, err
}

// valid reports whether the term certainly has not ended. A nil term, that of the kubeconfig's user, never ends.
func (t *term) valid() bool { return t == nil || int64(machine.Uptime()) < t.validUntil.Load() }

// keepExtending extends the term at intervals until end is called. The next request makes up for one that fails.
func (t *term) keepExtending() {
	t.stop = Every(t.duration/extensions, func(ctx context.Context) {
		if t.valid() { // an expired account is replaced before the next run
			_, _ = t.prolong(ctx)
		}
	})
}

// end stops extending the term.
func (t *term) end() {
	if t != nil {
		t.stop()
	}
}
