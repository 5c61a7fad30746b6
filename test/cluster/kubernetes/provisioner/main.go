// Command provisioner makes volumes of the test cluster's storage classes: for a claim whose pod has been given a
// node, a file, a loop device on it, and a local volume that is that device. The kubelet formats and mounts it. It
// removes all three again once the claim is gone, if the class says so.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	dir := flag.String("dir", "", "where the files of the volumes are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1)
	}
}

// A controller brings devices and volumes in line with claims.
type controller struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[string] // namespace/name of claims, names of volumes
	events  record.EventRecorder
	devices devices
}

func run(ctx context.Context, kubeconfig, dir string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 5*time.Second)
	c := &controller{
		client:  client,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(limit),
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: provisionerName}),
		devices: devices{dir: dir},
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(c.handler()); err != nil {
			return err
		}
	}
	factory.Storage().V1().StorageClasses().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	for c.next(ctx) {
	}
	return nil
}

// handler queues what changes. A claim or volume that is gone needs nothing any more.
func (c *controller) handler() cache.ResourceEventHandler {
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}
}

// next does one thing of the queue; false when there will be no more.
func (c *controller) next(ctx context.Context) bool {
	key, over := c.queue.Get()
	if over {
		return false
	}
	defer c.queue.Done(key)
	err := c.reconcile(ctx, key)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", key, err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *controller) reconcile(ctx context.Context, key string) error {
	namespace, name, inNamespace := strings.Cut(key, "/")
	if !inNamespace {
		v, err := c.volumes.Get(key)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil || !over(v) {
			return err
		}
		return c.remove(ctx, v)
	}
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !waits(claim) {
		return err
	}
	class, err := c.classes.Get(*claim.Spec.StorageClassName)
	if err != nil || class.Provisioner != provisionerName {
		return err
	}
	if err := c.provide(ctx, claim, class); err != nil {
		c.event(claim, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return err
	}
	c.event(claim, corev1.EventTypeNormal, "ProvisioningSucceeded", "made volume "+volumeName(claim))
	return nil
}

func (c *controller) event(claim *corev1.PersistentVolumeClaim, kind, reason, message string) {
	c.events.Event(runtime.Object(claim), kind, reason, message)
}

// provide makes the volume of a claim. All of it can be done again after it was interrupted.
func (c *controller) provide(ctx context.Context, claim *corev1.PersistentVolumeClaim,
	class *storagev1.StorageClass) error {
	if err := refuse(claim, class); err != nil {
		return err
	}
	node, err := c.client.CoreV1().Nodes().Get(ctx, claim.Annotations[selectedNode], metav1.GetOptions{})
	if err != nil {
		return err
	}
	d, err := c.devices.make(ctx, volumeName(claim), size(claim))
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().PersistentVolumes().Create(ctx, volumeOf(claim, class, node, d), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// remove removes a volume that nobody needs any more, with its device and file.
func (c *controller) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	if err := c.devices.remove(ctx, v.Name); err != nil {
		return err
	}
	volumes := c.client.CoreV1().PersistentVolumes()
	if v.DeletionTimestamp == nil {
		if err := volumes.Delete(ctx, v.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil // comes again as an update, to lose its finalizer
	}
	kept := v.DeepCopy()
	kept.Finalizers = without(kept.Finalizers, finalizer)
	_, err := volumes.Update(ctx, kept, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
