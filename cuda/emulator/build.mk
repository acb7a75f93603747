# What compiles kernels: included by the Makefile. clang-19 is needed to make PTX, g++
# to run kernels on the processor, python3 for ptxas; none of them to use what is
# checked in.

CLANG ?= clang-19
PTX_FLAGS := -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 --cuda-feature=+ptx80 \
	-nocudainc -nocudalib -std=c++17 -O3 -Wall -Wextra -S
PTXAS_VERSION := 12.9.86
PTXAS := .tools/ptxas-$(PTXAS_VERSION)

KERNEL_SOURCES := $(sort $(wildcard cuda/kernels/*.cu))
EMULATOR := cuda/emulator
CUDA_HEADER := cuda/driver/include

HAS_CLANG = command -v $(CLANG) >/dev/null || { echo "$(CLANG) is not here, which makes the kernels' PTX: install it with apt-get install clang-19"; exit 1; }
HAS_CXX = command -v $(CXX) >/dev/null || { echo "$(CXX) is not here, which compiles the emulated GPU: install it with apt-get install g++"; exit 1; }
HAS_PYTHON = command -v python3 >/dev/null || { echo "python3 is not here, whose packages have ptxas: install it with apt-get install python3-venv"; exit 1; }

.PHONY: ptx
ptx: ## the kernels' PTX that is checked in (needs clang-19)
	@$(HAS_CLANG)
	cd cuda/kernels && for f in *.cu; do $(CLANG) $(PTX_FLAGS) $$f -o $${f%.cu}.ptx || exit 1; done

.PHONY: ptx-check
ptx-check: ## whether the PTX is what the sources make (needs clang-19)
	@$(HAS_CLANG)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && cd cuda/kernels && for f in *.cu; do \
		$(CLANG) $(PTX_FLAGS) $$f -o $$dir/$${f%.cu}.ptx && \
		diff -q $${f%.cu}.ptx $$dir/$${f%.cu}.ptx || { echo "$$f: make ptx"; exit 1; }; done
	$(GO) test ./cuda/kernels

$(PTXAS):
	@$(HAS_PYTHON)
	python3 -m venv $@ && $@/bin/pip install -q --disable-pip-version-check nvidia-cuda-nvcc-cu12==$(PTXAS_VERSION) || { rm -rf $@; exit 1; }

.PHONY: ptxas fetch-ptxas
fetch-ptxas: $(PTXAS)
ptxas: $(PTXAS) ## the PTX through NVIDIA's assembler: no errors, no spills (needs python3; fetches 40 MB)
	@$(EMULATOR)/assemble.sh $$(find $(PTXAS) -name ptxas -type f) cuda/kernels/*.ptx

# Kernels and emulator for the processor: bare, and watched by sanitizers.
HOST_FLAGS := -std=c++20 -g -MMD -MP -Wall -Wextra -DGK_HOST -I$(CUDA_HEADER)
SANITIZE := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
RUN_PARTS := address block fiber launch
DRIVER_PARTS := $(RUN_PARTS) memory queue module device api_device api_graph api_memory api_stream blas
TEST_PARTS := $(notdir $(basename $(wildcard $(EMULATOR)/test/*.cc)))

# Objects come after this: without a compiler one sentence says so.
.PHONY: has-cxx
has-cxx:
	@$(HAS_CXX)

.tools/cuda/%.kernel.o: cuda/kernels/%.cu | has-cxx
	@mkdir -p $(@D) && $(CXX) $(HOST_FLAGS) -O2 -fPIC -x c++ -c $< -o $@
.tools/cuda/%.o: $(EMULATOR)/%.cc | has-cxx
	@mkdir -p $(@D) && $(CXX) $(HOST_FLAGS) -O2 -fPIC -fvisibility=hidden -c $< -o $@
.tools/cuda/sane/%.kernel.o: cuda/kernels/%.cu | has-cxx
	@mkdir -p $(@D) && $(CXX) $(HOST_FLAGS) $(SANITIZE) -x c++ -c $< -o $@
.tools/cuda/sane/%.o: $(EMULATOR)/%.cc | has-cxx
	@mkdir -p $(@D) && $(CXX) $(HOST_FLAGS) $(SANITIZE) -c $< -o $@
.tools/cuda/sane/%.o: $(EMULATOR)/test/%.cc | has-cxx
	@mkdir -p $(@D) && $(CXX) $(HOST_FLAGS) $(SANITIZE) -c $< -o $@

-include $(wildcard .tools/cuda/*.d .tools/cuda/sane/*.d)

KERNEL_PARTS := $(notdir $(basename $(KERNEL_SOURCES)))

.tools/cuda/libcuda.so: $(KERNEL_PARTS:%=.tools/cuda/%.kernel.o) $(DRIVER_PARTS:%=.tools/cuda/%.o)
	@$(CXX) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs -o $@ $^

KERNEL_TESTS := $(KERNEL_PARTS:%=.tools/cuda/sane/%.kernel.o) $(DRIVER_PARTS:%=.tools/cuda/sane/%.o) $(TEST_PARTS:%=.tools/cuda/sane/%.o)

.tools/cuda/test-kernels: $(KERNEL_TESTS)
	@$(CXX) $(SANITIZE) -o $@ $^

.PHONY: cuda-emulator
cuda-emulator: .tools/cuda/libcuda.so ## a CUDA driver that runs our kernels on the processor (needs g++)

.PHONY: test-kernels
test-kernels: .tools/cuda/test-kernels ## the kernels against plain loops, in five schedules, with sanitizers (needs g++)
	$<

MUTATE = $(GO) run ./cuda/emulator/mutate -cxx '$(CXX)' -flags '$(HOST_FLAGS) $(SANITIZE)'

.PHONY: mutate-kernels mutate-some
mutate-kernels: test-kernels ## whether those tests see faults planted in the kernels (takes minutes)
	$(MUTATE) $(KERNEL_TESTS)

# Which ones the commit says, so that all have their turn and each can be had again.
TURN ?= $$(printf %d 0x$$(git rev-parse --short=6 HEAD 2>/dev/null | cut -c 1-6 | grep . || echo 0))
mutate-some: .tools/cuda/test-kernels ## whether they see some of those faults (TURN=7 says which)
	$(MUTATE) -every 12 -turn "$(TURN)" $(KERNEL_TESTS)
