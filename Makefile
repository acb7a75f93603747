# The default goal prints the goals: lines of the form "goal: ## what it does".

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 5s

# Everything is pure Go; only the race detector and build tag cuda need cgo and gcc.
export CGO_ENABLED := 0

LINT_VERSION := v2.15.0
LINT := .tools/bin/golangci-lint-$(LINT_VERSION)

# Python's side of the tests that open shards with its safetensors package. They
# are skipped where there is no Python, and only there.
PYTHON := .tools/python
export SAFETENSORS_PYTHON := $(CURDIR)/$(PYTHON)/bin/python

# What scripts/peers and scripts/distributed compare with: PyTorch, PyG and DGL.
PEERS := .tools/peers

# Real graphs to cut, with their origins and licences beside them.
GRAPHS := engine/graph/read/testdata

# What makes and checks packages.
NFPM_VERSION := v2.45.2
NFPM := .tools/bin/nfpm-$(NFPM_VERSION)
HELM_VERSION := v3.22.0
HELM := .tools/bin/helm-$(HELM_VERSION)
# As a Go module it takes longer to build than all else here: Debian has it.
PROMTOOL := .tools/bin/promtool

# What -race slows down too much to run before every push: whole meshes of many
# nodes, measurements, and long arithmetic (the goroutines of which gemm, edges, train
# and workers test by themselves). `make race` runs them too.
RACE_LATER := /node/nodetest$$|/node/nodetest/chaos$$|/engine/tensor/foreign$$|/node/bench/strategies$$|/node/demo$$|/engine/tensor/contract$$|/engine/tensor/cpu$$|/engine/nn$$|/scripts/accuracy$$
RACE_AFFORDABLE = $(shell $(GO) list ./... | grep -Ev '$(RACE_LATER)')

.DEFAULT_GOAL := help
.NOTPARALLEL:

.PHONY: help
help: ## print this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/hopmesh, one static binary
	$(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/hopmesh ./cli/hopmesh

# The largest that bin/hopmesh may be, in bytes.
SIZE_LIMIT := 64000000

.PHONY: size-check
size-check: build
	@size=$$(wc -c <bin/hopmesh) && [ $$size -le $(SIZE_LIMIT) ] || \
		{ echo "bin/hopmesh has $$size bytes, more than the $(SIZE_LIMIT) that it may have: leave out what makes it larger"; exit 1; }

# The driver's library is opened when it runs, so this needs gcc and nothing of
# NVIDIA's, and one binary serves machines with a GPU and without.
CUDA_ENV := CGO_ENABLED=1 CGO_CFLAGS="-O2 -I$(CURDIR)/cuda/driver/include"
CUDA := $(CUDA_ENV) $(GO)

# What pip installs: the program and the Python package. arm64's is made here too, since
# nothing needs a C compiler.
WHEEL = python3 python/build/hopmesh_wheel.py --version $(VERSION) --into dist

.PHONY: wheel
wheel: build ## dist/hopmesh-*.whl for x86-64 and arm64, which pip installs (needs python3)
	rm -f dist/hopmesh-*.whl
	$(WHEEL) --program bin/hopmesh
	GOARCH=$(OTHER_ARCH) $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/$(OTHER_ARCH)/hopmesh ./cli/hopmesh
	$(WHEEL) --program bin/$(OTHER_ARCH)/hopmesh

OTHER_ARCH = $(if $(filter amd64,$(shell $(GO) env GOARCH)),arm64,amd64)

# Files are dated with the commit, so that the same commit gives the same bytes.
RELEASE = $(GO) run ./scripts/release -go $(GO) -nfpm $(NFPM) -version $(VERSION) -epoch $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))

.PHONY: release
release: $(NFPM) ## dist/release: archives, deb and rpm for amd64 and arm64, Helm chart, image's files, SBOM, checksums
	$(RELEASE)

.PHONY: build-cuda
build-cuda: ## bin/hopmesh-cuda, which looks for NVIDIA GPUs (needs gcc)
	$(CUDA) build -tags cuda -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/hopmesh-cuda ./cli/hopmesh
	scripts/needslibc bin/hopmesh-cuda

# One package more than there are processors: real meshes wait for gossip and disks.
PACKAGES_AT_ONCE = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# The packages whose tests take longest begin first.
SLOWEST := ./cli/hopmesh ./node ./node/nodetest/chaos ./engine/train ./engine/strategy/pipe ./engine/strategy/p3 ./engine/tensor/cpu ./node/bench/strategies

.PHONY: test
test: $(PYTHON) ## the tests, but those of test-long
	$(GO) test -p $(PACKAGES_AT_ONCE) -timeout 15m $(SLOWEST) ./...

# What takes long has build tag long, in files of its own.
LONG_FILES = $(shell grep -rlx --include='*_long_test.go' '//go:build long' .)
LONG_PACKAGES = $(sort $(dir $(LONG_FILES)))

.PHONY: test-long
test-long: $(PYTHON) ## the tests that take long: processes killed, large meshes, training up to known accuracies
	$(GO) test -tags long -timeout 30m -run "^($$(sed -n 's/^func \(Test[^(]*\)(.*/\1/p' $(LONG_FILES) | paste -sd '|' -))\$$" $(LONG_PACKAGES)

# The Python package, whose tests use what make build has built.
PYTHON_TESTS := .tools/python-tests
IN_PYTHON := cd python && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=.:build PYTHON_HOPMESH=$(CURDIR)/bin/hopmesh $(CURDIR)/$(PYTHON_TESTS)/bin

.PHONY: test-python
test-python: $(PYTHON_TESTS) build ## the tests of the Python package, on real daemons (needs python3; fetches 3 GB)
	$(IN_PYTHON)/ruff check --no-cache . && $(CURDIR)/$(PYTHON_TESTS)/bin/ruff format --no-cache --check .
	$(IN_PYTHON)/mypy --cache-dir /dev/null
	$(IN_PYTHON)/pytest
	$(MAKE) test-python-stores

# Sources in a store that speaks S3, which others wrote.
PYTHON_STORES := .tools/python-stores

.PHONY: test-python-stores
test-python-stores: $(PYTHON_STORES) build ## imports from an S3 store (moto), on a real daemon (needs python3 and pip)
	cd python && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. PYTHON_HOPMESH=$(CURDIR)/bin/hopmesh $(CURDIR)/$(PYTHON_STORES)/bin/pytest --override-ini 'addopts=-q -p no:cacheprovider' tests/stores

$(PYTHON_STORES): python/tests/stores/requirements.txt
	python3 -m venv $@ && $@/bin/pip install -q --disable-pip-version-check -r $< || { rm -rf $@; exit 1; }

# Those that need neither a daemon nor more than numpy, with the numpy that is here or one
# that pip fetches. Without either they are left out, which is said.
PYTHON_QUICK := .tools/python-quick

.PHONY: test-python-quick
test-python-quick: ## the tests of the Python package beside a daemon of their own, within a minute (needs python3 and numpy, or pip)
	@scripts/pythonquick $(PYTHON_QUICK) || [ $$? -eq 3 ]

# PyG's NeighborLoader needs torch-sparse, which is built from its source where a compiler
# is; that takes half an hour on two cores. LOADER=dgl compares with DGL's loader in its place.
LOADER_PYTHON = $(CURDIR)/$(if $(filter dgl,$(LOADER)),$(PEERS),$(PYTHON_TESTS))/bin/python

.PHONY: bench-python
bench-python: $(if $(filter dgl,$(LOADER)),$(PEERS),$(PYTHON_TESTS)) build ## the Python loader beside the daemon's own batches and PyG's loader, or DGL's with LOADER=dgl (5 minutes; ROUNDS=5)
ifneq ($(LOADER),dgl)
	$(IN_PYTHON)/python -c 'import torch_sparse' 2>/dev/null || \
		$(CURDIR)/$(PYTHON_TESTS)/bin/pip install -q --disable-pip-version-check --no-build-isolation setuptools wheel scipy torch-scatter torch-sparse || true
endif
	cd python && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=.:build PYTHON_HOPMESH=$(CURDIR)/bin/hopmesh DGLBACKEND=pytorch $(LOADER_PYTHON) -W ignore bench.py $(if $(RESULTS),$(abspath $(RESULTS))/python.md)

.PHONY: accuracy-python
accuracy-python: $(PYTHON_TESTS) build ## a PyTorch model through the loader beside plain PyG, accuracy of 5 seeds (ONLY=Cora,... selects; RESULTS=docs/results writes a page)
	$(IN_PYTHON)/python -W ignore accuracy.py $(CURDIR) $(if $(RESULTS),$(abspath $(RESULTS))/python-accuracy.md)

$(PYTHON_TESTS): python/tests/requirements.txt
	python3 -m venv $@ && $@/bin/pip install -q --disable-pip-version-check -r $< || { rm -rf $@; exit 1; }
	touch $@

# With IMAGES=docs/images it keeps its pictures there.
.PHONY: test-page
test-page: build ## the page of a mesh that trains and loses a node, in headless Chromium (fetches it where apt-get can)
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; [ -n "$$CHROMIUM" ] || \
		{ apt-get update -q && apt-get install -qy --no-install-recommends chromium; } || \
		{ echo "chromium is not here and could not be fetched: install it, or name it in CHROMIUM"; exit 1; }
	HOPMESH=$(CURDIR)/bin/hopmesh IMAGES=$(if $(IMAGES),$(abspath $(IMAGES))) $(GO) test -tags page -count=1 -timeout 10m -v -run '^TestPage$$' ./node/api/page

.PHONY: test-upgrade
test-upgrade: ## today's nodes beside those of the commit in packaging/previous, upgraded under a job (needs the history)
	$(GO) run ./scripts/upgrade -previous packaging/previous -out $(or $(RESULTS),docs/results)/upgrade.md

# It mounts and installs in a mount namespace and a root directory of its own, which end
# with it. A second release has to be the same bytes.
.PHONY: test-packages
test-packages: release $(HELM) $(PROMTOOL) ## installs, runs, removes and purges the deb; the rpm, the chart, alerts and dashboard (needs root and Debian)
	@missing=; for of in rpm zsh fish man:man-db systemd-analyze:systemd ip:iproute2; do command -v $${of%:*} >/dev/null || missing="$$missing $${of#*:}"; done; [ -z "$$missing" ] || \
		{ apt-get update -q && apt-get install -qy --no-install-recommends $$missing; } || \
		{ echo "$$missing could not be fetched: install them"; exit 1; }
	$(RELEASE) -into dist/release-again
	cmp dist/release/SHA256SUMS dist/release-again/SHA256SUMS && rm -r dist/release-again
	RELEASE=$(CURDIR)/dist/release HELM=$(CURDIR)/$(HELM) PROMTOOL=$(CURDIR)/$(PROMTOOL) OUTER_MOUNTS=$$(readlink /proc/self/ns/mnt) \
		unshare --mount --propagation private $(GO) test -tags packages -count=1 -timeout 20m -v ./packaging

# No package may take more CPU seconds than this.
CPU_LIMIT := 90

.PHONY: test-times
test-times: $(PYTHON) ## the CPU time that each package's tests take; fails above 90 s
	GO=$(GO) scripts/times $(CPU_LIMIT) -p $(PACKAGES_AT_ONCE) -timeout 15m $(SLOWEST) ./...

.PHONY: compare
compare: ## the speed of this tree beside that of commit BASE, measured in turns (ROUNDS=7)
	@[ -n "$(BASE)" ] || { echo "say which commit: make compare BASE=COMMIT"; exit 1; }
	GO=$(GO) scripts/compare "$(BASE)" $(or $(ROUNDS),7)

# A seed repeats its faults, not the order in which goroutines run.
.PHONY: chaos chaos-processes
chaos: ## SEEDS (1000) histories of faults over whole meshes in virtual time, from seed FIRST (0)
	GO=$(GO) scripts/chaos virtual $(or $(FIRST),0) $(or $(SEEDS),1000) $(if $(RESULTS),$(RESULTS)/chaos.md)

chaos-processes: ## the same over SEEDS (100) meshes of real processes, in network namespaces, with disks that lose what was not synced (needs root, loop devices and mkfs.ext4)
	GO=$(GO) scripts/chaos processes $(or $(FIRST),0) $(or $(SEEDS),100) $(if $(RESULTS),$(RESULTS)/chaos.md)

.PHONY: golden
golden: ## the golden weights of every strategy with every model (make test has four models)
	$(GO) test ./engine/golden -count=1 -all

# What tests do here in processes of their own needs a kernel that knows qemu, so
# those are runs of their own.
QEMU = $(shell command -v qemu-aarch64 || command -v qemu-aarch64-static)
TEST_ARM64 = GOARCH=arm64 $(GO) test -timeout 20m -exec $(QEMU)

.PHONY: test-arm64
test-arm64: ## the kernels' tests for arm64, under qemu
	@[ -n "$(QEMU)" ] || { echo "qemu-aarch64 is not here: install it with apt-get install qemu-user-static"; exit 1; }
	$(TEST_ARM64) -skip '^(TestVariable|TestContractOfSmallerFamilies)$$' ./engine/tensor/cpu/... ./engine/sample
	HOPMESH_CPU=generic $(TEST_ARM64) -run '^(TestContract|TestEpilogues)$$' ./engine/tensor/cpu
	for value in generic avx2 neon none-such; do \
		HOPMESH_CPU=$$value $(TEST_ARM64) -run '^TestCurrent$$' ./engine/tensor/cpu/family || exit 1; \
	done

# A driver that runs kernels on the processor, where it was built.
CUDA_EMULATOR := $(CURDIR)/.tools/cuda/libcuda.so

# Nodes that share the device, where there are tests of that.
EMULATED_ALSO := ./node/gputest

# What build tag cuda has, in parts that go on after one another's failures. LEFT_OUT
# names those that a machine can't fetch the programs for.
CUDA_PARTS := $(filter-out $(LEFT_OUT),test-cuda-calls test-cuda-emulated ptx-check ptxas test-kernels mutate-some gpu-check)

.PHONY: test-cuda
test-cuda: ## what has build tag cuda, without a GPU (needs gcc, g++, clang-19, xz and python3)
	@scripts/each $(CUDA_PARTS)
	@[ -z "$(LEFT_OUT)" ] || echo "left out: $(LEFT_OUT)"

.PHONY: test-cuda-calls test-cuda-emulated
test-cuda-calls: build-cuda ## the calls of the driver, on one that computes nothing (needs gcc)
	$(CUDA) vet -tags cuda ./cuda/... ./cli/hopmesh
	$(CUDA) vet -tags cuda,emulator ./cuda/... ./scripts/gpu/... $(EMULATED_ALSO)
	$(CUDA) test -race -tags cuda -timeout 15m ./cuda/...

# Tag emulator has the tests that need a driver that runs kernels: the emulated one, or
# a GPU's. Go does not see that the library reads its schedule, and would answer from
# its cache. The device's tests try other schedules themselves.
EMULATED = HOPMESH_LIBCUDA=$(CUDA_EMULATOR) $(CUDA) test -tags cuda,emulator -timeout 25m
test-cuda-emulated: cuda-emulator ## whatever runs kernels, on an emulated driver (needs gcc and g++)
	$(EMULATED) ./cuda/... $(EMULATED_ALSO)
	HOPMESH_EMU_SCHED=greedyrev HOPMESH_EMU_COPY=eager HOPMESH_EMU_QUEUE=eager $(EMULATED) -count=1 ./cuda/driver ./cuda/kernels ./cuda/sample
	HOPMESH_EMU_SCHED=rand:5 HOPMESH_EMU_COPY=late HOPMESH_EMU_QUEUE=rand:3 $(EMULATED) -count=1 ./cuda/driver ./cuda/kernels ./cuda/sample

# All that is run where there is a GPU, and the same here with the emulated driver: some
# steps, or with STEPS= all, most of which test-cuda-emulated has, too.
GPU_BUNDLE := dist/gpu
STEPS ?= device,primitives,driver,fault,kernels,training,blocks,pyg,pyg-blocks,products

.PHONY: gpu-bundle gpu-check
gpu-bundle: build-cuda ## dist/gpu.txz, for a machine with a GPU and neither Go nor a network (needs gcc)
	$(CUDA_ENV) scripts/gpu/bundle $(GPU_BUNDLE)

gpu-check: gpu-bundle cuda-emulator ## whether what that machine runs does run, on the emulated driver (needs gcc and g++)
	HOPMESH_LIBCUDA=$(CUDA_EMULATOR) $(GPU_BUNDLE)/gpu -tiny -limit 30m -only '$(STEPS)' -out $(GPU_BUNDLE)/out

# NVIDIA's header, to compare ours with; a few megabytes.
NVIDIA_HEADER := .tools/cudaheader

.PHONY: cuda-header-check
cuda-header-check: $(NVIDIA_HEADER) ## compares our cuda.h with NVIDIA's (needs python3 and gcc; fetches 4 MB)
	scripts/cudaheader $(NVIDIA_HEADER)

$(NVIDIA_HEADER): scripts/cudaheader.txt
	python3 -m venv $@ && $@/bin/pip install -q --disable-pip-version-check --no-deps -r $< || { rm -rf $@; exit 1; }
	touch $@

.PHONY: race
race: ## the tests under the race detector (needs gcc; takes long)
	GO=$(GO) scripts/race 30m ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (5s)
	@grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sed 's/:func / /' | sort | \
	while read -r file target; do \
		echo "$$target in $$(dirname $$file)"; \
		GO=$(GO) scripts/fuzz "$$(dirname $$file)" "$$target" $(FUZZTIME) || exit 1; \
	done

.PHONY: fuzz-hours
fuzz-hours: ## every fuzz target until all had HOURS (6) of processor time together; goes on where it stopped
	GO=$(GO) scripts/fuzzhours $(or $(HOURS),6) $(if $(RESULTS),$(RESULTS)/fuzz.md)

# With RESULTS=docs/results, commands that measure write their results there as Markdown
# pages, too.
page = $(if $(RESULTS),$(1) $(RESULTS)/$(2).md)

.PHONY: bench
bench: build ## everything beside its baseline, and the packages' benchmarks (RESULTS=docs/results writes pages, too)
	bin/hopmesh bench transport $(call page,--out,transport)
	bin/hopmesh bench data --graphs $(GRAPHS) $(call page,--out,data)
	bin/hopmesh bench kernels $(call page,--out,kernels)
	bin/hopmesh bench sampler $(call page,--out,sampler)
	bin/hopmesh bench strategies $(call page,--out,strategies)
	$(GO) test -run '^$$' -bench . -benchmem ./mesh/... ./consensus/... ./engine/...

.PHONY: bench-scale
bench-scale: build ## the memory of daemons, each cell beside its bar; goes on where it stopped (RESULTS=docs/results writes a page)
	bin/hopmesh bench scale $(call page,--out,scale)

# SCALE is the graph's size as a share of ogbn-papers100M's.
.PHONY: scale
scale: build ## a graph that no daemon could hold, on four of 1 GiB each; goes on where it stopped (SCALE=0.01 tries it out)
	bin/hopmesh bench scale --only papers --papers $(or $(SCALE),0.1) $(call page,--out,papers)

.PHONY: scale-links
scale-links: build ## partners and learnt rows on daemons within bounds of memory; goes on where it stopped (RESULTS=docs/results writes a page)
	bin/hopmesh bench scale --only links $(call page,--out,scale-links)

.PHONY: accuracy
accuracy: ## recipes of known accuracy; goes on where it stopped (ROWS=cora,photo selects, NODES=3 compares)
	$(GO) run ./scripts/accuracy -rows '$(ROWS)' -nodes '$(or $(NODES),0)' $(call page,-out,accuracy$(if $(NODES),-nodes))

# Graphs that are not in this repository, such as wn18rr, are in the folder TRIPLES.
.PHONY: links
links: $(PYTHON_TESTS) ## filtered ranks of knowledge graphs, beside PyG; goes on where it stopped (ROWS=umls selects, TRIPLES=DIR has more graphs)
	$(GO) run ./scripts/links -rows '$(ROWS)' -more '$(TRIPLES)' -python $(PYTHON_TESTS)/bin/python $(call page,-out,links)

.PHONY: ablation
ablation: ## grappa's halo, sweep and corrections beside one machine; goes on where it stopped (ROWS=cora selects, PLOT=FILE draws elsewhere)
	$(GO) run ./scripts/ablation -rows '$(ROWS)' -plot '$(or $(PLOT),$(if $(ROWS),,scripts/ablation/means.svg))' $(call page,-out,ablation)

.PHONY: deep
deep: ## deep models by pipe beside graph, and pipe without each of its techniques; goes on where it stopped (ROWS=cora selects)
	$(GO) run ./scripts/deep -rows '$(ROWS)' $(call page,-out,deep)

.PHONY: bench-peers
bench-peers: $(PEERS) ## epochs beside PyG's and DGL's on this machine's CPU (needs python3; fetches 1.5 GB)
	$(GO) run ./scripts/peers -python $(PEERS)/bin/python -only '$(ONLY)' $(call page,-out,peers)

.PHONY: bench-typed
bench-typed: $(PEERS) ## steps of an R-GCN on a typed graph beside DGL's, by one thread and two (3 minutes; fetches 1.5 GB)
	$(GO) run ./scripts/peers -typed -python $(PEERS)/bin/python $(call page,-out,typed-peers)

.PHONY: bench-distributed
bench-distributed: build $(PEERS) ## beside DistDGL and DDP on shaped nodes; goes on where it stopped (needs root; ONLY=headline takes 15 minutes)
	$(GO) run ./scripts/distributed -python $(PEERS)/bin/python -only '$(or $(ONLY),all)' $(call page,-out,distributed) $(if $(RESULTS),-plot $(RESULTS)/distributed.svg)

.PHONY: reproduce
reproduce: build ## claims of the three papers beside our figures; goes on where it stopped, some six hours (needs root; PAPER=leapgnn,grappa,gnnpipe selects)
	$(GO) run ./scripts/reproduce -only '$(PAPER)' $(if $(RESULTS),-out '$(RESULTS)')

.PHONY: bench-python-distributed
bench-python-distributed: build $(PEERS) ## the Python loader beside DistDGL's on three shaped nodes, in 10 minutes (needs root; fetches 1.5 GB)
	$(GO) run ./scripts/distributed -python $(PEERS)/bin/python -loaders $(call page,-out,python-distributed)

.PHONY: demo
demo: build ## a mesh of three nodes on this machine, a model trained, and the death of its leader
	bin/hopmesh demo

include cuda/emulator/build.mk

.PHONY: man
man: ## manual pages into bin/man
	$(GO) run ./scripts/man bin/man

.PHONY: lint
lint: $(LINT) ## what .golangci.yml asks for
	$(LINT) run ./...
	$(LINT) run --build-tags page ./node/api/page
	$(LINT) run --build-tags packages ./packaging
	$(CUDA_ENV) $(LINT) run --build-tags cuda ./cuda/... ./scripts/gpu/...
	$(CUDA_ENV) $(LINT) run --build-tags cuda,emulator ./cuda/... ./scripts/gpu/... $(EMULATED_ALSO)

$(LINT):
	GOBIN=$(CURDIR)/.tools/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv .tools/bin/golangci-lint $@

$(NFPM):
	GOBIN=$(CURDIR)/.tools/bin $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	mv .tools/bin/nfpm $@

$(HELM):
	GOBIN=$(CURDIR)/.tools/bin $(GO) install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv .tools/bin/helm $@

$(PROMTOOL):
	mkdir -p $(@D)
	if command -v promtool >/dev/null; then ln -s "$$(command -v promtool)" $@; else \
		dir=$$(mktemp -d) && cd $$dir && apt-get update -q && apt-get download -q prometheus && dpkg-deb --extract prometheus_*.deb . && \
		mv usr/bin/promtool $(CURDIR)/$@ && rm -r $$dir; fi || \
		{ echo "promtool is not here and could not be fetched: install it"; exit 1; }

$(PYTHON): scripts/python/requirements.txt
	@if command -v python3 >/dev/null; then \
		{ python3 -m venv $@ && $@/bin/pip install -q --disable-pip-version-check -r $< && touch $@; } || \
		{ rm -rf $@; echo "Python's safetensors could not be fetched: the test that opens shards with it is skipped"; }; \
	else echo "no python3: the test that opens shards with it is skipped"; fi

$(PEERS): scripts/peers/requirements.txt
	python3 -m venv $@ && $@/bin/pip install -q --disable-pip-version-check -r $< || { rm -rf $@; exit 1; }
	touch $@

.PHONY: preflight
preflight: fmt-check vet tidy-check gen-check lint size-check test test-long race-affordable test-cuda ## what must pass before a push
	$(MAKE) fuzz FUZZTIME=2s

.PHONY: fmt-check vet tidy-check gen-check race-affordable
fmt-check:
	@out=$$(gofmt -l .); [ -z "$$out" ] || { echo "not as gofmt writes it; run gofmt -w on:"; echo "$$out"; exit 1; }

vet:
	$(GO) vet ./...
	$(GO) vet -tags long $(LONG_PACKAGES)
	$(GO) vet -tags processes ./node/nodetest/chaos
	$(GO) vet -tags page ./node/api/page
	$(GO) vet -tags packages ./packaging

tidy-check:
	$(GO) mod tidy -diff

# The assembly and the CUDA driver's interface that are checked in are what their
# generators make.
gen-check:
	engine/tensor/gen/all.sh --check
	$(GO) run ./cuda/driver/facts -check

race-affordable:
	GO=$(GO) scripts/race 30m $(RACE_AFFORDABLE)
