# To begin with: make demo, make test. Before handing in: .ci/run. docs/internals/testing.md says what to run when.

# Looked for when it is first used. Without Go 1.21 or later in PATH, .ci/toolchain gets one.
GO      ?= $(eval GO := $(or $(shell .ci/toolchain),$(error no Go to build with)))$(GO)
BIN     := bin/knotmeter
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
ifeq ($(shell uname -s),Linux)
LDFLAGS += -E main.entry# cmd/knotmeter/stdout_linux.go says why
endif

.PHONY: build agents install dist dist-test toolchain-test demo quick test check race stress accuracy lint cross deps \
	debian-test e2e e2e-target e2e-flannel e2e-multus e2e-calico e2e-cilium e2e-in-turn e2e-faults e2e-app e2e-smoke \
	e2e-volumes e2e-cnis e2e-turn studies soak programs cluster bench bench-report bench-api bench-cluster gallery aa aa-cluster \
	power power-latency power-cluster explain-accuracy \
	explain-accuracy-cluster clean
.DEFAULT_GOAL := build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/knotmeter

# The agents of container images, next to the program, where it looks for them.
AGENT = GOOS=linux CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)-agent-linux
agents:
	GOARCH=amd64 $(AGENT)-amd64 ./cmd/knotmeter-agent
	GOARCH=arm64 $(AGENT)-arm64 ./cmd/knotmeter-agent

# The program with its agents, and under the names by which kubectl finds a plugin and completes its commands.
PREFIX ?= /usr/local
install: build agents
	install -d $(DESTDIR)$(PREFIX)/bin
	install $(BIN) $(BIN)-agent-linux-amd64 $(BIN)-agent-linux-arm64 $(DESTDIR)$(PREFIX)/bin
	ln -sf knotmeter $(DESTDIR)$(PREFIX)/bin/kubectl-knotmeter
	ln -sf knotmeter $(DESTDIR)$(PREFIX)/bin/kubectl_complete-knotmeter

# The files of a release: docs/installing.md says what they are. Debian's packages are those of SNAPSHOT, a time such
# as 20261123T000000Z, or the current ones.
dist:
	@.ci/packages debian-archive-keyring
	rm -rf bin/dist
	$(GO) run ./cmd/dist -version '$(VERSION)' -o bin/dist $(if $(SNAPSHOT),-snapshot '$(SNAPSHOT)')

# Makes a release twice, compares the bytes, and follows docs/installing.md with one of them.
dist-test: deps
	KNOTMETER_RELEASE=twice $(GO) test -count 1 -v -timeout 60m -run TestReproducible ./cmd/dist

# Builds the program without Go, and with Debian's Go.
toolchain-test:
	KNOTMETER_TOOLCHAIN=get $(GO) test -count 1 -v -timeout 60m -run TestBuild ./test/toolchain

# Debian's own kernel after boot, with few modules and control groups of version 2: the lab, WireGuard of the kernel,
# limits of CPU time, and hardware threads.
DEBIAN = test/debian/boot
debian-test: build
	$(DEBIAN) $(BIN) run lab:native lab:vxlan lab:ipip lab:bridge lab:macvlan lab:native+wireguard \
		--suite network:quick --case pod-pod/other/tcp-rr --duration 2s --blocks 1 --progress none
	$(DEBIAN) $(BIN) run local: 'local:?label=half&cpu-limit=500m' --case compute/sort --case compute/sort:cpus=core \
		--duration 2s --blocks 1 --progress none
	$(GO) test -exec '$(CURDIR)/$(DEBIAN)' -p 1 -count 1 -timeout 10m -skip '^Test(Accuracy|Stress)' ./internal/cgroup \
		./internal/machine ./internal/load/computeload ./internal/targets/local

# Three datapaths of this machine's own kernel in three cases, and their node-to-node references. A case ends when it is
# decided, from eleven blocks on; the others have the rest of the budget.
demo: build
	$(BIN) run --target lab:native --target lab:vxlan --target lab:native+wireguard --suite network:quick \
		--case 'pod-pod/*' --duration 200ms --warmup 50ms --budget 1m --seed 1

TESTED = $(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
# Tests that compare measurements with truths need all of this machine: TestAccuracy…. Those that repeat something often
# enough to find what is rare: TestStress…. All others share it, side by side, since they wait most of the time.
SHARED = -skip '^Test(Accuracy|Stress)' -p 4 $(TESTED)
ALONE  = -p 1 -run '^Test$(1)' \
	$$(grep -rl --include='*_test.go' '^func Test$(1)' ./cmd ./internal | xargs -n 1 dirname | sort -u)

# Packages that differ from main, and what imports them.
quick: deps
	@GO='$(GO)' .ci/quick

test: deps
	@$(GO) test -timeout 20m $(SHARED)

# What repeats, takes longer or needs a machine that does nothing else.
check: race stress accuracy

# Statistics are arithmetic without goroutines: the detector is off for them, which saves minutes.
RACE = -race -gcflags=github.com/knotmeter/knotmeter/internal/stats=-race=false
race: deps
	@$(GO) test $(RACE) -timeout 20m $(SHARED)

stress: deps
	$(GO) test -timeout 20m $(call ALONE,Stress)

accuracy: deps
	$(GO) test -timeout 20m $(call ALONE,Accuracy)

# Linters are modules of their own, so that what they need is no dependency of the program; the two need different
# versions of one module. The first command has the modules below test/, too.
LINT = nice $(GO) tool -modfile=.ci/lint/go.mod golangci-lint
lint:
	$(LINT) fmt --diff
	$(LINT) run
	nice $(GO) tool -modfile=.ci/actionlint/go.mod actionlint

# What must build elsewhere.
cross:
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./cmd/...

# Debian packages that the tests and benchmarks use: a C compiler for the race detector and the
# reference programs, iperf3, sysbench, openssl and stress-ng as second tools, fio for storage, a browser that shows the page, Prometheus' own parser of what is written for it, shellcheck for the scripts of
# the GitHub action, and Debian's keys for releases.
deps:
	@.ci/packages gcc libc6-dev iperf3 fio sysbench openssl stress-ng chromium \
		python3-prometheus-client shellcheck jq debian-archive-keyring

# Tests on real clusters on this machine, which take root: all of them, whatever fails, with a list at the end. Tests wait
# for pods most of the time, so there are two clusters side by side; what compares latencies or needs a prober that is on
# time comes after them, alone. All tests are compiled first, once.
E2E_TOGETHER = e2e-target e2e-faults e2e-flannel e2e-multus e2e-cilium e2e-in-turn
E2E_ALONE    = e2e-calico e2e-app
e2e: cluster
	@$(GO) test -run '^$$' ./internal/targets/kube/... ./internal/family/api/kubeapi ./test/e2e/... >/dev/null
	@MAKE='$(MAKE)' test/e2e/stages $(E2E_TOGETHER) -- $(E2E_ALONE)

CLUSTER ?= 0
ON  = @test/e2e/on-cluster -id $(CLUSTER)
E2E = $(GO) test -count 1 -p 1 -timeout 60m

e2e-target:
	$(ON) -nodes 3 -- $(E2E) -parallel 4 ./internal/targets/kube/...
e2e-flannel:
	$(ON) -network flannel-vxlan -ip 46 -- $(E2E) -skip '^TestDynamics' ./test/e2e/paths
e2e-multus:
	$(ON) -multus -- $(E2E) -skip '^TestDynamics' ./test/e2e/paths
e2e-in-turn: # the studies of CNIs, with each of their networks in turn
	$(ON) -multus -- $(E2E) -run '^TestInTurn$$' ./test/e2e/studies
e2e-calico:
	$(ON) -network calico-vxlan -- $(E2E) ./test/e2e/paths
e2e-cilium:
	$(ON) -network cilium-native-kpr -- $(E2E) -skip '^TestDynamics' ./test/e2e/paths
e2e-faults:
	$(ON) -- $(E2E) ./internal/family/api/kubeapi ./test/e2e/faults
e2e-app: # with a real Vault, on this machine and as an image on the nodes
	$(ON) -nodes 3 -vault -- $(E2E) ./test/e2e/web ./test/e2e/studies

# The reports of docs/studies, each of one scaled-down pass on a cluster.
studies: cluster
	$(ON) -multus -- env KNOTMETER_E2E_REPORTS=$(CURDIR)/docs/studies $(E2E) -run '^TestInTurn$$' ./test/e2e/studies
	$(ON) -nodes 3 -vault -- env KNOTMETER_E2E_REPORTS=$(CURDIR)/docs/studies $(E2E) -run '^TestStudies$$' \
		./test/e2e/studies

# A newcomer's way, on one cluster.
e2e-smoke: cluster
	$(ON) -- $(E2E) -v -run '^TestNewcomer$$' ./test/e2e/faults

# What else there is of the real products, one after another.
CNIS = calico-direct cilium-vxlan cilium-native kube-router
e2e-cnis: cluster
	$(foreach network,$(CNIS),test/e2e/on-cluster -network $(network) -- $(E2E) ./test/e2e/paths &&) true
	$(ON) -network flannel-vxlan -firewall -- $(E2E) -run TestPolicies ./test/e2e/paths
	$(foreach network,calico-vxlan cilium-native-kpr,test/e2e/on-cluster -nodes 3 -network $(network) -- \
		$(E2E) -run '^TestConformance$$' ./internal/targets/kube &&) true

# Three real CNIs in turn on one cluster, each installed eight times, which takes half an hour.
e2e-turn: cluster
	$(ON) -network flannel-vxlan -- $(E2E) -v ./test/e2e/turn

# Storage on a cluster, held to the contract of all targets, which takes some forty volumes.
e2e-volumes: cluster
	$(ON) -- env KNOTMETER_E2E_VOLUMES=all $(E2E) -run 'TestVolume' ./internal/targets/kube/... ./test/e2e/faults

# Faults at random moments for as long as SOAK says; docs/evidence/soak.md has the figures of one such run.
SOAK ?= 20m
soak: cluster
	$(ON) -- env KNOTMETER_SOAK=$(SOAK) $(GO) test -count 1 -timeout 0 -v -run TestSoak ./test/e2e/faults

# What clusters are made of: compiled once, into the user's cache, which takes a quarter of an hour.
programs:
	$(GO) build -C test/cluster -o $(CURDIR)/bin/cluster .
	bin/cluster build -network flannel-vxlan
	bin/cluster vault
	bin/cluster build -network calico-vxlan
	bin/cluster build -network cilium-vxlan

cluster: build agents programs
	@.ci/packages runc iptables iproute2 util-linux mount procps e2fsprogs xfsprogs busybox-static fio \
		ipset clang-19
	$(GO) vet -C test/cluster ./...
	$(GO) test -C test/cluster ./...
	CGO_ENABLED=0 $(GO) test -C test/cluster/kubernetes -trimpath ./provisioner
	$(BIN) image build --out bin/agent.tar --tools echo,cat,sleep,false,fio,openssl
	@.ci/images $(BIN) bin

bench: deps
	$(GO) run ./bench network
	$(GO) run ./bench compute
	$(GO) test -run '^$$' -bench "Open|Close" ./internal/lab

# Time and memory of a report on 100 000 runs.
bench-report: build
	$(GO) run ./bench report -binary $(BIN)

# How late the generator begins requests over HTTP/2. As real-time work it goes before what else the machine does.
bench-api:
	$(GO) build -o bin/bench ./bench
	chrt -f 20 bin/bench api

# What runs on a cluster cost: pods, requests, seconds.
bench-cluster: cluster
	$(ON) -- sh -c \
		'$(GO) run ./bench cluster -binary $(BIN) -kubectl "bin/cluster kubectl" -kubeconfig $$KNOTMETER_E2E_KUBECONFIG'

# Real CNIs side by side: docs/gallery. Takes an hour and a quarter of a machine that does nothing else, or 20 minutes
# for PAGE=one-machine-bare alone; what results/gallery has already is not measured again.
gallery: cluster
	$(GO) run ./bench gallery -binary $(BIN) $(if $(PAGE),-page $(PAGE))

# How often the program is wrong, and how often it finds what is there: false-positives….md and power….md in
# docs/evidence. All may be stopped at any time and go on where they were. Those on a cluster start one of their own,
# and take half an hour and a quarter of one.
RATES = $(GO) run ./bench rates -study $@ -binary $(BIN)
aa power power-latency: build
	$(RATES) $(if $(CPUS),-cpus $(CPUS))
aa-cluster: cluster
	$(ON) -- sh -c 'KUBECONFIG=$$KNOTMETER_E2E_KUBECONFIG exec $(RATES)'
power-cluster: cluster
	$(ON) -nodes 4 -rates 1gbit,1gbit,950mbit,950mbit -- \
		sh -c 'KUBECONFIG=$$KNOTMETER_E2E_KUBECONFIG exec $(RATES)'

# How often explain names the right cause: docs/evidence/explain-accuracy.md, in the lab and on pairs of clusters. Both
# go on where they were; MINUTES limits a piece, and N is the number of experiments, or of verdicts on clusters.
CAUSES = $(GO) run ./bench causes -binary $(BIN) $(if $(N),-n $(N)) $(if $(MINUTES),-minutes $(MINUTES))
explain-accuracy: build
	$(CAUSES)
explain-accuracy-cluster: cluster
	$(CAUSES) -cluster

clean:
	rm -rf bin
