package kube

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
)

// An account does not outlive the program by an hour, whatever ends the program. Kubernetes removes accounts and Roles
// by no clock, but Jobs it does, with all that they own: so the account, its Role and binding and the pods that have
// its token belong to a Job that starts no pod and has a deadline, which the program extends for as long as it runs.

// termTime is how long an account is left without the program. With the token's own end and the garbage collector's
// work it stays below an hour.
const termTime = 50 * time.Minute

// extensions are how often within that time the deadline is extended.
const extensions = 10

// A term is the time that an account has.
type term struct {
	jobs  batchclient.JobInterface
	job   *batchv1.Job // as it is asked for
	owner metav1.OwnerReference
	lasts time.Duration
	began time.Time
	until atomic.Int64 // its end as far as it is known here, in Unix seconds
	stop  func()
}

// newTerm begins a term of the experiment's account.
func (k *kubeTarget) newTerm(ctx context.Context) (*term, error) {
	t := &term{jobs: k.cluster.BatchV1().Jobs(k.namespace), job: k.termJob(), lasts: k.termTime, began: wallClock()}
	job, err := t.prolong(ctx)
	if err != nil {
		return nil, err
	}
	t.owner = metav1.OwnerReference{APIVersion: t.job.APIVersion, Kind: t.job.Kind, Name: job.Name, UID: job.UID}
	return t, nil
}

// wallClock is the time that goes on while the machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// termJob owns what the account consists of. It starts no pod, and is removed when its time is over.
func (k *kubeTarget) termJob() *batchv1.Job {
	b := manifest.Blueprint{Settings: k.options.Settings, Namespace: k.namespace}
	j := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: k.accountName(), Namespace: k.namespace, Labels: k.apiLabels()},
		Spec:       batchv1.JobSpec{Parallelism: new(int32(0)), TTLSecondsAfterFinished: new(int32(0))},
	}
	j.Spec.Template.Spec = k.options.PodSpec(b.Container(manifest.Client))
	j.Spec.Template.Spec.Volumes = b.Volumes()
	return j
}

// prolong puts the end of the term as far off as it may be. One request makes the Job or changes its deadline,
// whichever it takes.
func (t *term) prolong(ctx context.Context) (*batchv1.Job, error) {
	now := wallClock()
	j := t.job.DeepCopy()
	j.Spec.ActiveDeadlineSeconds = new(int64(now.Sub(t.began).Seconds() + t.lasts.Seconds()))
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	job, err := t.jobs.Patch(ctx, j.Name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: manifest.ManagedBy})
	if err == nil {
		t.until.Store(now.Add(t.lasts).Unix())
	}
	return job, err
}

// runs says whether the term goes on, as far as is known here. An account that was not made has none, which does not
// end.
func (t *term) runs() bool { return t == nil || wallClock().Unix() < t.until.Load() }

// extend has the term go on until end is called. A request that fails is made up for by the next.
func (t *term) extend() {
	t.stop = watching.Every(t.lasts/extensions, func(ctx context.Context) {
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
