package main

import "time"

// step is one program with arguments, which ends by itself or at its limit.
type step struct {
	name  string
	what  string
	limit time.Duration
	// needs lists programs that may be missing, python also with its modules. If one is
	// missing, the step is skipped.
	needs []string
	// dir is the folder of the bundle in which it runs.
	dir string
	// run is a shell command. $BUNDLE, $SCRATCH and $OUT are folders, $TINY is -tiny or
	// empty, and $ARCH is the GPU's architecture, such as sm_90.
	run string
	// slow steps are skipped with -tiny, since the emulated driver would take too long.
	slow bool
	// beside lets the step start at once, concurrently with earlier ones, which do not
	// wait for it. after is the step that must have succeeded before.
	beside bool
	after  string
}

// tests holds the arguments with which a package's tests are run. They skip tests of the
// emulator alone, by their names.
const tests = " -test.v -test.timeout 5m -test.skip 'OtherSchedules|Emulated|TestFaultsStay' "

// steps lists the steps, the cheapest first.
var steps = []step{
	{
		name: "device", what: "what is found, and which device is used", limit: 20 * time.Second,
		run: "nvidia-smi -q -d CLOCK,MEMORY,POWER 2>/dev/null | head -60; $BUNDLE/hopmesh-cuda doctor | grep -i device | tee /dev/stderr | grep -q cuda:",
	},
	{
		name: "ptxas", what: "the PTX through this machine's assembler", limit: 40 * time.Second, needs: []string{"ptxas"},
		run: "V=1 sh cuda/emulator/assemble.sh ptxas cuda/kernels/*.ptx",
	},
	{
		name: "nvcc", what: "the same sources by nvcc", limit: 60 * time.Second, needs: []string{"nvcc"}, dir: "cuda/kernels",
		run: "ls *.cu | xargs -P 8 -I{} nvcc -std=c++17 -O3 -arch=$ARCH -Xptxas -v -cubin -o $SCRATCH/{}.cubin {}",
	},
	{
		name: "primitives", what: "each primitive by itself", limit: 30 * time.Second, dir: "cuda/kernels",
		run: "./kernels.test -test.v -test.run Check",
	},
	{
		name: "driver", what: "streams, events and a kernel through the driver", limit: 30 * time.Second, dir: "cuda/driver",
		run: "./driver.test" + tests,
	},
	{
		name: "contract", what: "the contract of devices, with exact products", limit: 60 * time.Second, dir: "cuda/device",
		run: "./device.test" + tests + "-test.run '^TestContract$'",
	},
	{
		name: "rounding", what: "products of TF32 and BF16 numbers; allocations of a step", limit: 40 * time.Second, dir: "cuda/device",
		run: "./device.test" + tests + "-test.run '^(TestRoundedProducts|TestAllocations)$'",
	},
	{
		name: "rest", what: "the device's other tests", limit: 40 * time.Second, dir: "cuda/device",
		run: "./device.test -test.v -test.skip '^(TestContract|TestRoundedProducts|TestAllocations|TestOtherSchedules|TestFaultsStay|.*Emulated.*)$'",
	},
	{
		name: "fault", what: "a kernel that faults: the error that follows, and the one of opening the GPU again", limit: 20 * time.Second, dir: "cuda/device",
		run: "./device.test -test.v -test.run '^TestFaultsStay$'",
	},
	{
		name: "sampler", what: "blocks drawn on the GPU are the processor's, array by array", limit: 40 * time.Second, dir: "cuda/sample",
		run: "./sample.test" + tests,
	},
	{
		name: "cora", what: "Cora is trained to the processor's losses within 1e-3, from the same samples", limit: 60 * time.Second, dir: "cuda",
		run: "./cuda.test" + tests + "-epochs $EPOCHS",
	},
	{
		name: "nodes", what: "nodes on this machine that share the GPU", limit: 60 * time.Second, dir: "node/gputest",
		run: "./gputest.test" + tests,
	},
	{
		name: "demo", what: "three nodes that share the GPU train Cora, and one of them dies", limit: 60 * time.Second, slow: true,
		run: "$BUNDLE/hopmesh-cuda demo --device cuda",
	},
	{
		name: "memcheck", what: "compute-sanitizer: memory", limit: 60 * time.Second, needs: []string{"compute-sanitizer"}, dir: "cuda",
		run: "compute-sanitizer --tool memcheck --error-exitcode 9 kernels/kernels.test -test.run Check && " +
			"cd sample && compute-sanitizer --tool memcheck --error-exitcode 9 ./sample.test -test.run 'SkewedGraph|MeanIsThat'",
	},
	{
		name: "racecheck", what: "compute-sanitizer: races in shared memory", limit: 60 * time.Second, needs: []string{"compute-sanitizer"}, dir: "cuda",
		run: "compute-sanitizer --tool racecheck --error-exitcode 9 kernels/kernels.test -test.run Check && " +
			"cd device && compute-sanitizer --tool racecheck --error-exitcode 9 ./device.test -test.run 'TestWhatAStepTakes|TestProductsAsTheyAreWanted'",
	},
	{
		name: "kernels", what: "copies, sums along edges and products, timed", limit: 60 * time.Second,
		run: "$BUNDLE/measure $TINY kernels",
	},
	{
		name: "products", what: "the same products by cuBLAS", limit: 40 * time.Second, needs: []string{"python3 torch"},
		run: "python3 theirs.py $TINY products",
	},
	{
		// The wheels of PyTorch contain cuBLAS, in a folder named after their version of
		// CUDA. The emulated driver contains its own.
		name: "blas", what: "products by cuBLAS, where they are asked for", limit: 40 * time.Second, dir: "cuda/device",
		needs: []string{"python3 torch"},
		run: "lib=${HOPMESH_LIBCUDA:-$(find $(python3 -c 'import sys; print(*sys.path[1:])') -path '*/nvidia/*/libcublas.so.1[23]' 2>/dev/null | head -1)}; " +
			"HOPMESH_CUBLAS=${lib:-on} DEVICE_TEST_BLAS='with cuBLAS' ./device.test -test.v -test.run '^TestProductsAsTheyAreWanted$'",
	},
	{
		name: "graph", what: "a graph of ogbn-products' size, made up and cut", limit: 240 * time.Second, beside: true,
		run: "$BUNDLE/measure $TINY graph $SCRATCH/graph",
	},
	{
		name: "training", what: "GraphSAGE 15, 10, 5 with batches of 1024, hidden 256, as a node trains it", limit: 100 * time.Second, after: "graph",
		run: "$BUNDLE/measure $TINY train $SCRATCH/graph",
	},
	{
		name: "blocks", what: "steps on blocks that were drawn before", limit: 60 * time.Second, after: "graph",
		run: "$BUNDLE/measure $TINY blocks $SCRATCH/graph $SCRATCH/blocks.safetensors",
	},
	{
		name: "pyg", what: "the same training with PyG's layers and a sampler of PyTorch's operations", limit: 90 * time.Second, after: "graph",
		needs: []string{"python3 torch torch_geometric"},
		run:   "python3 theirs.py $TINY train $SCRATCH/graph",
	},
	{
		name: "pyg-blocks", what: "the same blocks with PyG's layers", limit: 60 * time.Second, after: "blocks",
		needs: []string{"python3 torch torch_geometric"},
		run:   "python3 theirs.py $TINY blocks $SCRATCH/graph $SCRATCH/blocks.safetensors",
	},
}

// bar is the minimum of a figure, by itself or relative to another one.
type bar struct {
	what         string
	figure, over string // over "": the figure itself
	least, most  float64
}

var bars = []bar{
	{what: "a batch of GraphSAGE in ms", figure: "training step, ours", most: 1},
	{what: "PyTorch's batch over ours", figure: "training step, PyTorch", over: "training step, ours", least: 3},
	{what: "PyTorch's step on given blocks over ours", figure: "step on given blocks, PyTorch", over: "step on given blocks, ours", least: 3},
	{what: "gathered rows over a copy", figure: "gathered rows, ours", over: "copy", least: 0.8},
	{what: "mean of features over a copy", figure: "mean of features, ours", over: "copy", least: 0.8},
	{what: "mean of hidden rows over a copy", figure: "mean of hidden rows, ours", over: "copy", least: 0.8},
	{what: "mean of hidden rows, back, over a copy", figure: "mean of hidden rows, back, ours", over: "copy", least: 0.8},
	{what: "product forwards over cuBLAS", figure: "product forwards, ours", over: "product forwards, cuBLAS", least: 0.7},
	{what: "product of hidden rows over cuBLAS", figure: "product of hidden rows, ours", over: "product of hidden rows, cuBLAS", least: 0.7},
	{what: "product for weights over cuBLAS", figure: "product for weights, ours", over: "product for weights, cuBLAS", least: 0.7},
	{what: "product for inputs over cuBLAS", figure: "product for inputs, ours", over: "product for inputs, cuBLAS", least: 0.7},
}
