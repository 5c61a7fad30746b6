// Command provisioner makes volumes of the test cluster's storage classes. For a claim whose pod has been assigned a
// node it makes a file, a loop device on it, and a local volume of that device, which the kubelet formats and mounts.
// It removes all three once the claim is deleted, if the class has the reclaim policy Delete.
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
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the API server")
	dir := flag.String("dir", "", "directory of the volumes' files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1)
	}
}

// A controller makes and removes devices and volumes for claims.
type controller struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[string] // namespace/name of claims, names of volumes
	events  record.EventRecorder
	devices devices
}

// run handles claims and volumes until the context ends.
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
	for c.processNext(ctx) {
	}
	return nil
}

// handler queues new and changed objects. Deleted claims and volumes need no work.
func (c *controller) handler() cache.ResourceEventHandler {
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}
}

// processNext handles one key of the queue; it returns false when the queue was shut down.
func (c *controller) processNext(ctx context.Context) bool {
	key, shutDown := c.queue.Get()
	if shutDown {
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

// reconcile makes the volume of a claim that waits for one, or removes a volume that is no longer needed. The key is
// namespace/name of a claim, or the name of a volume.
func (c *controller) reconcile(ctx context.Context, key string) error {
	namespace, name, inNamespace := strings.Cut(key, "/")
	if !inNamespace {
		v, err := c.volumes.Get(key)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil || !isReleased(v) {
			return err
		}
		return c.remove(ctx, v)
	}
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !awaitsVolume(claim) {
		return err
	}
	class, err := c.classes.Get(*claim.Spec.StorageClassName)
	if err != nil || class.Provisioner != provisionerName {
		return err
	}
	if err := c.provision(ctx, claim, class); err != nil {
		c.event(claim, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return err
	}
	c.event(claim, corev1.EventTypeNormal, "ProvisioningSucceeded", "made volume "+volumeName(claim))
	return nil
}

func (c *controller) event(claim *corev1.PersistentVolumeClaim, kind, reason, message string) {
	c.events.Event(runtime.Object(claim), kind, reason, message)
}

// provision makes the volume of a claim. It can be repeated after an interruption.
func (c *controller) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim,
	class *storagev1.StorageClass) error {
	if err := checkClaim(claim, class); err != nil {
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

// remove removes a volume that is no longer needed, with its device and file.
func (c *controller) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	if err := c.devices.remove(ctx, v.Name); err != nil {
		return err
	}
	volumes := c.client.CoreV1().PersistentVolumes()
	if v.DeletionTimestamp == nil {
		if err := volumes.Delete(ctx, v.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil // the deletion causes an update, which removes the finalizer
	}
	kept := v.DeepCopy()
	kept.Finalizers = without(kept.Finalizers, finalizer)
	_, err := volumes.Update(ctx, kept, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
