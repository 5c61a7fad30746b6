package diagnosis

import "regexp"

// A hint is a remedy for messages of the API server, a node or a driver that match a pattern.
type hint struct {
	when   *regexp.Regexp
	remedy string
	final  bool // waiting does not help
}

// findHint returns the first hint that matches a text, or else a hint with the remedy otherwise.
func findHint(text string, hints []hint, otherwise string) hint {
	for _, h := range hints {
		if h.when.MatchString(text) {
			return h
		}
	}
	return hint{remedy: otherwise}
}

// pattern compiles a regular expression that ignores case and matches across lines.
func pattern(alternatives string) *regexp.Regexp { return regexp.MustCompile(`(?is)` + alternatives) }

// schedulingHints are hints about pods that cannot be scheduled.
var schedulingHints = []hint{
	{pattern(`insufficient ephemeral-storage`), "make room on the node's disk, name others with client-node= and " +
		"server-node=, or ask for less with size=", false},
	{pattern(`insufficient`),
		"make room on the node, name others with client-node= and server-node=, or ask for less in config=", false},
	{pattern(`taint`), "tolerate the taint in config=, or name other nodes with client-node= and server-node=", false},
	{pattern(`free ports`), "something on the node has the port: choose another with port=", false},
}

const otherNodes = "name other nodes with client-node= and server-node="

// volumeSchedulingHints are hints about pods that cannot be scheduled because of their volume.
var volumeSchedulingHints = append([]hint{
	{pattern(`volume node affinity|didn't find available persistent volumes|topology`),
		"the volume is not to be had on this node: name another with client-node= or node-selector=", false},
	{pattern(`max volume count`), "the node has as many volumes as it can have: name another with client-node=", false},
	{pattern(`enough free storage`), "there is no room for the volume on this node: ask for less with size=, or name " +
		"another node with client-node=", false},
}, schedulingHints...)

// provisioningHints are hints about volumes that a provisioner could not create.
var provisioningHints = []hint{
	{pattern(`access mode|accessmode|multi_node|single_node`),
		"the class has not the access mode {access}: ask for another one with access-mode=", true},
	{pattern(`volumemode|volume mode|block volume|raw block`),
		"the class has not this mode of volumes: ask for the other one with volume-mode=", true},
	{pattern(`too small|too few|minimum|at least|less than|invalid size|outofrange|out of range`),
		"{size} is not a size of this class: ask for another with size=", true},
	{pattern(`no space|insufficient capacity|not enough|resourceexhausted|stockout|enospc`),
		"there is no room for it: free some, or ask for less with size=", false},
	{pattern(`quota|limit exceeded|limitexceeded|too many`),
		"a quota of the provider is used up: remove volumes, have it raised, or ask for less with size=", false},
	{pattern(`storageclass.*not found|not found.*storageclass`),
		"'kubectl get storageclasses' lists those for {class}", false},
	{pattern(`denied|forbidden|unauthorized|credentials`),
		"the provisioner may not do it: see to its rights at the provider", false},
}

// mountHints are hints about volumes that cannot be attached or mounted.
var mountHints = []hint{
	{pattern(`read-only|bad option`),
		"see to the mountOptions of the class, or name another {class}: what is measured is written first", false},
	{pattern(`unknown filesystem|mkfs|wrong fs type|format of disk`), "the node cannot make or mount the class's kind " +
		"of file system: see to its fsType and mountOptions, or ask for volume-mode=block", false},
	{pattern(`multi-attach`), "the volume is still attached to another node: see what has it there", false},
}

// refusalHints are whole sentences about refused requests. {namespace} stands for the namespace, {text} for the API
// server's message, and {cause} for the part of it that admission wrote.
var refusalHints = []hint{
	{pattern(`violates PodSecurity`), "the namespace {namespace} refuses the pod: {text}; allow it what it asks for, or " +
		"leave namespace= out for one that does", false},
	{pattern(`exceeded quota.*ephemeral-storage`), "a quota of the namespace {namespace} is used up: {text}; raise it, " +
		"ask for less with size=, or give another namespace=", false},
	{pattern(`ephemeral-storage usage per|ephemeral-storage limit`),
		"a LimitRange of the namespace {namespace}, or config=, limits the pod's ephemeral storage: {text}; ask for " +
			"less with size=", false},
	{pattern(`exceeded quota`),
		"a quota of the namespace {namespace} is used up: {text}; raise it, or give another namespace=", false},
	{pattern(`failed quota`),
		"a quota of the namespace {namespace} wants more said about resources: {text}; say it in config=", false},
	{pattern(`per Container|per Pod`),
		"a LimitRange of the namespace {namespace} refuses the pod: {text}; ask for other resources in config=", false},
	{pattern(`being terminated`), "the namespace {namespace} is being removed: {text}; wait until it is gone and make " +
		"it again, or give another namespace=", false},
	{pattern(`RuntimeClass.*not found|not found.*RuntimeClass`),
		"the cluster has not the RuntimeClass: {cause}; 'kubectl get runtimeclasses' lists those for runtime-class=", false},
	{pattern(`^namespaces ".*not found$`),
		"there is no namespace {namespace}; make it, or leave namespace= out for one that is made and removed", false},
}
