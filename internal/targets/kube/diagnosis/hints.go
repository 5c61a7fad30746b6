package diagnosis

import "regexp"

// A hint is what to do about a text of the API server, a node or a driver, by its words.
type hint struct {
	when   *regexp.Regexp
	remedy string
	final  bool // waiting cannot help
}

// hinted is the first hint about a text; else what is to be done about all others.
func hinted(text string, hints []hint, otherwise string) hint {
	for _, h := range hints {
		if h.when.MatchString(text) {
			return h
		}
	}
	return hint{remedy: otherwise}
}

// words matches any text that has one of some words, in whatever case.
func words(alternatives string) *regexp.Regexp { return regexp.MustCompile(`(?is)` + alternatives) }

// Of pods that no node takes.
var schedulingHints = []hint{
	{words(`insufficient ephemeral-storage`), "make room on the node's disk, name others with client-node= and " +
		"server-node=, or ask for less with size=", false},
	{words(`insufficient`),
		"make room on the node, name others with client-node= and server-node=, or ask for less in config=", false},
	{words(`taint`), "tolerate the taint in config=, or name other nodes with client-node= and server-node=", false},
	{words(`free ports`), "something on the node has the port: choose another with port=", false},
}

const otherNodes = "name other nodes with client-node= and server-node="

// Of pods that no node takes with their volume.
var volumeSchedulingHints = append([]hint{
	{words(`volume node affinity|didn't find available persistent volumes|topology`),
		"the volume is not to be had on this node: name another with client-node= or node-selector=", false},
	{words(`max volume count`), "the node has as many volumes as it can have: name another with client-node=", false},
	{words(`enough free storage`), "there is no room for the volume on this node: ask for less with size=, or name " +
		"another node with client-node=", false},
}, schedulingHints...)

// Of volumes that a provisioner could not make.
var provisioningHints = []hint{
	{words(`access mode|accessmode|multi_node|single_node`),
		"the class has not the access mode {access}: ask for another one with access-mode=", true},
	{words(`volumemode|volume mode|block volume|raw block`),
		"the class has not this mode of volumes: ask for the other one with volume-mode=", true},
	{words(`too small|too few|minimum|at least|less than|invalid size|outofrange|out of range`),
		"{size} is not a size of this class: ask for another with size=", true},
	{words(`no space|insufficient capacity|not enough|resourceexhausted|stockout|enospc`),
		"there is no room for it: free some, or ask for less with size=", false},
	{words(`quota|limit exceeded|limitexceeded|too many`),
		"a quota of the provider is used up: remove volumes, have it raised, or ask for less with size=", false},
	{words(`storageclass.*not found|not found.*storageclass`),
		"'kubectl get storageclasses' lists those for {class}", false},
	{words(`denied|forbidden|unauthorized|credentials`),
		"the provisioner may not do it: see to its rights at the provider", false},
}

// Of volumes that do not come into their pod.
var mountHints = []hint{
	{words(`read-only|bad option`),
		"see to the mountOptions of the class, or name another {class}: what is measured is written first", false},
	{words(`unknown filesystem|mkfs|wrong fs type|format of disk`), "the node cannot make or mount the class's kind " +
		"of file system: see to its fsType and mountOptions, or ask for volume-mode=block", false},
	{words(`multi-attach`), "the volume is still attached to another node: see what has it there", false},
}

// Of requests that are refused, the whole sentence: {text} is the API server's, {cause} what admission says in it.
var refusalHints = []hint{
	{words(`violates PodSecurity`), "the namespace {namespace} refuses the pod: {text}; allow it what it asks for, or " +
		"leave namespace= out for one that does", false},
	{words(`exceeded quota.*ephemeral-storage`), "a quota of the namespace {namespace} is used up: {text}; raise it, " +
		"ask for less with size=, or give another namespace=", false},
	{words(`ephemeral-storage usage per|ephemeral-storage limit`),
		"a LimitRange of the namespace {namespace}, or config=, limits the pod's ephemeral storage: {text}; ask for " +
			"less with size=", false},
	{words(`exceeded quota`),
		"a quota of the namespace {namespace} is used up: {text}; raise it, or give another namespace=", false},
	{words(`failed quota`),
		"a quota of the namespace {namespace} wants more said about resources: {text}; say it in config=", false},
	{words(`per Container|per Pod`),
		"a LimitRange of the namespace {namespace} refuses the pod: {text}; ask for other resources in config=", false},
	{words(`being terminated`), "the namespace {namespace} is being removed: {text}; wait until it is gone and make " +
		"it again, or give another namespace=", false},
	{words(`RuntimeClass.*not found|not found.*RuntimeClass`),
		"the cluster has not the RuntimeClass: {cause}; 'kubectl get runtimeclasses' lists those for runtime-class=", false},
	{words(`^namespaces ".*not found$`),
		"there is no namespace {namespace}; make it, or leave namespace= out for one that is made and removed", false},
}
