# The two that a newcomer needs:  make demo   make test

GO      ?= go
BIN     := bin/knotmeter
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The demo compares three datapaths of this machine's own kernel in three cases and the upper bounds. Its six
# comparisons can be decided from eleven blocks on; those that are stop there, and the others have the rest of the
# budget: two to three minutes.
DEMO := --target lab:native --target lab:vxlan --target lab:native+wireguard --suite network:quick --case 'pod-pod/*' --budget 3m --seed 1

.PHONY: bench-api build agents install demo test e2e unit lint cross deps bench bench-report bench-cluster aa power clean
.DEFAULT_GOAL := build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/knotmeter

# The agents of container images, beside the program, where it looks for them.
agents:
	GOOS=linux GOARCH=amd64 CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)-agent-linux-amd64 ./cmd/knotmeter-agent
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)-agent-linux-arm64 ./cmd/knotmeter-agent

# The program with its agents, and under the names by which kubectl finds a plugin and completes its commands.
PREFIX ?= /usr/local
install: build agents
	install -d $(DESTDIR)$(PREFIX)/bin
	install $(BIN) $(BIN)-agent-linux-amd64 $(BIN)-agent-linux-arm64 $(DESTDIR)$(PREFIX)/bin
	ln -sf knotmeter $(DESTDIR)$(PREFIX)/bin/kubectl-knotmeter
	ln -sf knotmeter $(DESTDIR)$(PREFIX)/bin/kubectl_complete-knotmeter

demo: build
	$(BIN) run $(DEMO)

test: deps lint cross unit

# Packages of arithmetic and text, on one goroutine and away from the network, which internal/architecture holds them
# to. They are tested side by side, and without the race detector: it would have nothing to find in them and make them
# five times as slow. What says that several goroutines can use it is tested with it too, and a few simulations.
PLAIN := audit compare importer golden nearest reference report report/chart report/picture report/reporttest result stats store suite suite/network table unit userfile workload

# Packages whose tests look at nothing but what they made, so that they can run side by side too.
OWN := agent architecture door host host/local host/remote image machine preflight registry runner target target/claim target/targettest tool tool/tooltest

# The statistics in programs under the race detector are arithmetic all the same.
RACE := -race -gcflags=github.com/knotmeter/knotmeter/internal/stats=-race=false

# The others one package at a time: tests that look for what a killed program left would find what another package
# is using. Those that compare the generator with truths run without the race detector, which would take from them the
# CPUs that they measure with.
unit:
	$(GO) test -timeout 20m $(PLAIN:%=./internal/%)
	$(GO) test -race -run 'Concurrently|FalseEquivalence' ./internal/stats ./internal/compare
	@$(GO) list $(RACE) -test -export ./... >/dev/null 2>&1 || true # compiles side by side; what fails to compile fails below
	$(GO) test $(RACE) -timeout 20m $(OWN:%=./internal/%)
	$(GO) test $(RACE) -p 1 -timeout 20m $$($(GO) list ./... | grep -vxF $(foreach p,$(PLAIN) $(OWN) selftest,-e github.com/knotmeter/knotmeter/internal/$p))
	$(GO) test -timeout 20m ./internal/selftest

# Real clusters on this machine, which take root, and the tests against them. Their programs are compiled once, into the
# user's cache. Tests wait for pods most of the time, so there are four clusters side by side, and on each one test after the
# other. What compares latencies, or looks for the highest rate, comes when the others are done.
e2e: cluster
	@$(GO) test -run '^$$' ./internal/target/kube ./internal/kubeapi ./test/e2e/... >/dev/null
	@$(MAKE) --no-print-directory -j 4 e2e-target e2e-contract e2e-paths e2e-faults
	@$(MAKE) --no-print-directory -j 2 e2e-api e2e-app

E2E = $(GO) test -count 1 -p 1 -timeout 30m
CONTRACT = 'Injected|TestConformance'

e2e-target:
	@$(call ON_CLUSTER,0,-nodes 3) $(E2E) -parallel 4 -skip $(CONTRACT) ./internal/target/kube

e2e-contract:
	@$(call ON_CLUSTER,1,-nodes 3) $(E2E) -run $(CONTRACT) ./internal/target/kube

e2e-paths:
	@$(call ON_CLUSTER,2,-network flannel-vxlan -ip 46) $(E2E) ./test/e2e/paths
	@$(call ON_CLUSTER,2,-multus) $(E2E) ./test/e2e/paths

e2e-faults:
	@$(call ON_CLUSTER,3) $(E2E) ./internal/kubeapi ./test/e2e/faults

e2e-api:
	@$(call ON_CLUSTER,0) $(E2E) ./test/e2e/api

# A real Vault, on this machine and as an image on the nodes.
e2e-app:
	@$(call ON_CLUSTER,1,-nodes 3,$$(bin/cluster vault | tail -n 1)) KNOTMETER_E2E_VAULT=$$(bin/cluster vault | head -n 1) KNOTMETER_E2E_VAULT_IMAGE=knotmeter.local/vault:1 $(E2E) ./test/e2e/app

# Storage on a cluster, held to the contract of all targets, which takes some forty volumes.
e2e-volumes: cluster
	@$(call ON_CLUSTER,0) KNOTMETER_E2E_VOLUMES=all $(GO) test -count 1 -timeout 30m -run 'TestVolume' ./internal/target/kube ./test/e2e/faults

# Faults at random moments for as long as SOAK says; docs/soak.md has the figures of one such run.
SOAK ?= 20m
soak: cluster
	@$(call ON_CLUSTER,0) KNOTMETER_SOAK=$(SOAK) $(GO) test -count 1 -timeout 0 -v -run TestSoak ./test/e2e/faults

.PHONY: programs cluster soak e2e-target e2e-contract e2e-paths e2e-faults e2e-api e2e-app e2e-volumes

# What clusters are made of, which takes a quarter of an hour to compile with an empty cache.
programs:
	$(GO) build -C test/cluster -o $(CURDIR)/bin/cluster .
	bin/cluster build
	bin/cluster vault

cluster: build agents programs
	@.ci/packages runc iptables iproute2 util-linux mount procps e2fsprogs xfsprogs busybox-static fio
	$(GO) vet -C test/cluster ./...
	$(GO) test -C test/cluster ./...
	CGO_ENABLED=0 $(GO) test -C test/cluster/kubernetes -trimpath ./provisioner
	$(BIN) image build -o bin/agent.tar --tools echo,cat,sleep,false,fio
	@.ci/images $(BIN) bin

# What stands before a command on a cluster, by its number, how it is made and what images it has besides, which is there as long as the command is.
ON_CLUSTER = bin/cluster up -id $(1) $(2) && trap 'bin/cluster down -id $(1)' EXIT && bin/cluster load -id $(1) bin/agent.tar bin/test-*.tar $(3) && \
	KNOTMETER_E2E_KUBECONFIG=$$(bin/cluster kubeconfig -id $(1)) KNOTMETER_E2E_OWN_IMAGES=knotmeter.local/test- KNOTMETER_E2E_CLUSTER=$(CURDIR)/bin/cluster KNOTMETER_E2E_PROGRAM=$(CURDIR)/$(BIN)

lint:
	@unformatted=$$(gofmt -l cmd internal bench test 2>/dev/null); test -z "$$unformatted" || { echo "not gofmt'ed: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# What must build elsewhere.
cross:
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./cmd/...

# Debian packages that the tests and benchmarks use: a C compiler for the race detector and the
# reference programs, iperf3 as the second tool, fio for storage, a browser that shows the page, and Prometheus' own
# parser of what is written for it.
deps:
	@.ci/packages gcc libc6-dev iperf3 fio chromium python3-prometheus-client

bench: deps
	$(GO) run ./bench
	$(GO) test -run '^$$' -bench "Open|Close" ./internal/lab

# Time and memory of reports on 100 000 runs.
bench-report: build
	$(GO) run ./bench/report -binary $(BIN)

# How late requests of an open loop are begun, over HTTP/2 with TLS on one CPU. With the scheduling class of real-time work it
# is the generator that is measured, and not what else the machine does.
bench-api:
	$(GO) build -o bin/bench-api ./bench/api
	chrt -f 20 bin/bench-api

# What runs on a cluster cost: pods, requests, seconds.
bench-cluster: cluster
	@$(call ON_CLUSTER,0) $(GO) run ./bench/cluster -binary $(BIN) -kubectl 'bin/cluster kubectl' -kubeconfig $$(bin/cluster kubeconfig)

# How often the program is wrong, and how often it finds what is there: docs/false-positives.md and
# docs/power.md. Both may be stopped at any time and go on where they were.
aa power: build
	$(GO) run ./bench/rates -study $@ -binary $(BIN) $(if $(CPUS),-cpus $(CPUS))

clean:
	rm -rf bin
