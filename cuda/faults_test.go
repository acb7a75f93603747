//go:build cuda && emulator

package cuda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/slot"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// trainsOn is the variable of a process of these tests that trains on this device.
const trainsOn = "CUDA_TEST_TRAINS_ON"

func TestMain(m *testing.M) {
	if device := os.Getenv(trainsOn); device != "" {
		if err := json.NewEncoder(os.Stdout).Encode(trainedOn(device)); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A training is how one went on a device and, if that broke, went on with the processor.
type training struct {
	Detected, Reason string
	Error            string
	Broken           bool
	Epoch, Step      int
	Losses           []float64 // of the epochs that are told of, the last time
}

func trainedOn(want string) (t training) {
	var err error
	if t.Detected, t.Reason, err = Detect(want); err != nil {
		t.Error = err.Error()
	}
	if t.Detected == "" || want == "auto" {
		return t
	}
	dir, err := os.MkdirTemp("", "training")
	if err == nil {
		defer os.RemoveAll(dir)
		err = t.train(dir)
	}
	if err != nil {
		t.Error = err.Error()
	}
	return t
}

func (t *training) train(dir string) error {
	src, err := generate.New(generate.Options{Kind: "sbm", Vertices: 300, Edges: 1200, Features: 8, Classes: 3, Seed: 1})
	if err != nil {
		return err
	}
	made := filepath.Join(dir, "shards")
	m, err := build.Run(context.Background(), src, build.Options{Dir: made, Shards: 2, Seed: 1})
	if err != nil {
		return err
	}
	var shards []*graph.Shard
	for i := range m.Shards {
		s, err := graph.OpenShard(filepath.Join(made, graph.ShardFile(i)))
		if err != nil {
			return err
		}
		defer s.Close()
		shards = append(shards, s)
	}
	r := recipe.DefaultRecipe("sage")
	r.Model.Hidden, r.Epochs, r.Batch, r.Fanouts, r.Seed = 8, 2, 60, []int{3, 3}, 1
	o := train.Options{Strategies: strategies.All, Threads: 1, Dir: filepath.Join(dir, "run"), Dataset: "d", Resume: true, Interval: 1}
	o.Report = func(e trained.Epoch) { t.Losses = append(t.Losses, e.Loss) }
	name := t.Detected
	o.Device = func(int) (tensor.Device, error) { return Open(name) }
	_, err = train.Run(context.Background(), r, shards, o)
	broken, is := errors.AsType[*slot.Broken](err)
	if !is {
		return err
	}
	t.Error, t.Broken, t.Epoch, t.Step = err.Error(), true, broken.Epoch, broken.Step
	o.Device = nil
	if _, err := train.Run(context.Background(), r, shards, o); err != nil {
		return fmt.Errorf("and then on the processor: %w", err)
	}
	return nil
}

// elsewhere trains in a process with these variables.
func elsewhere(t *testing.T, device string, env ...string) training {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(append(os.Environ(), trainsOn+"="+device), env...)
	out, err := c.Output()
	var got training
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		t.Fatalf("%v: %v: %s", env, err, out)
	}
	return got
}

// Whatever becomes of a GPU, there is one sentence that says what and where, and the
// processor trains on: nothing ends the process.
func TestEmulatedFaults(t *testing.T) {
	whole := elsewhere(t, "cuda")
	if whole.Error != "" || whole.Detected != "cuda:0" || len(whole.Losses) != 2 {
		t.Fatalf("without a fault: %+v", whole)
	}
	for _, c := range []struct {
		what, fault, memory string
		says                []string
	}{
		{what: "a kernel faults", fault: "adam:5:719", says: []string{"failed in epoch ", ", step ", "CUDA_ERROR_LAUNCH_FAILED (719)"}},
		{what: "a kernel reads beside its memory", fault: "aggregate_f32:7:700", says: []string{" epoch ", "CUDA_ERROR_ILLEGAL_ADDRESS (700)"}},
		{what: "the GPU falls off the bus as a copy is given", fault: "cuMemcpyHtoDAsync_v2:15:999", says: []string{"cuMemcpyHtoDAsync: CUDA_ERROR_UNKNOWN (999)"}},
		{what: "as a chain is launched", fault: "cuGraphLaunch:3:46", says: []string{"failed in epoch ", "cuGraphLaunch: CUDA_ERROR_DEVICE_UNAVAILABLE (46)"}},
		{what: "while it is waited for", fault: "cuStreamSynchronize:9:214", says: []string{" epoch ", "CUDA_ERROR_ECC_UNCORRECTABLE (214)"}},
		{what: "it is another program's", fault: "cuDevicePrimaryCtxRetain:1:46", says: []string{"can't do this training", "open GPU 0: cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE (46)"}},
		{what: "a driver that can't read the kernels", fault: "cuModuleLoadData:2:222", says: []string{"can't do this training", "kernels ", "cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)"}},
		{what: "no pinned memory", fault: "cuMemHostAlloc:1:2", says: []string{"bytes of pinned memory: cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"}},
		{what: "memory for a small arena only", memory: "22", says: []string{"of the GPU's memory are needed at once, and ", " are free: "}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			env := []string{"HOPMESH_EMU_FAULT=" + c.fault}
			if c.fault == "" {
				env = []string{"HOPMESH_EMU_MEMORY=" + c.memory}
			}
			got := elsewhere(t, "cuda", env...)
			if !got.Broken || strings.Contains(got.Error, "\n") || len(got.Losses) == 0 {
				t.Errorf("got %+v", got)
			}
			for _, says := range c.says {
				if !strings.Contains(got.Error, says) {
					t.Errorf("%q does not say %q", got.Error, says)
				}
			}
			last := len(got.Losses) - 1
			if math.Abs(got.Losses[last]-whole.Losses[1]) > 1e-2*whole.Losses[1] {
				t.Errorf("the losses are %v, and without a fault %v", got.Losses, whole.Losses)
			}
		})
	}
}

// What a GPU can do without does not end a training on it.
func TestEmulatedFaultsThatDoNotMatter(t *testing.T) {
	whole := elsewhere(t, "cuda")
	for _, fault := range []string{"cuGraphCreate:1:2", "cuGraphInstantiateWithFlags:2:2", "cuGraphExecKernelNodeSetParams_v2:5:2"} {
		if got := elsewhere(t, "cuda", "HOPMESH_EMU_FAULT="+fault); got.Error != "" || fmt.Sprint(got.Losses) != fmt.Sprint(whole.Losses) {
			t.Errorf("%s: %+v, and without a fault %v", fault, got, whole.Losses)
		}
	}
}

// What is asked for, and what there is of it, is told by name.
func TestEmulatedChoices(t *testing.T) {
	for _, c := range []struct{ device, env, detected, says string }{
		{"cuda:7", "", "", "device cuda:7: no GPU can be used: GPU 7 is not there: the last is 0; use --device auto or --device cpu"},
		{"cuda", "HOPMESH_CUDA=off", "", "device cuda: no GPU can be used: GPUs are turned off by HOPMESH_CUDA=off"},
		{"cuda", "HOPMESH_LIBCUDA=" + os.Args[0], "", "device cuda: no GPU can be used: no NVIDIA driver on this machine: "},
		{"cuda", "HOPMESH_LIBCUDA=" + os.TempDir(), "", "device cuda: no GPU can be used: no NVIDIA driver on this machine: "},
		{"cuda", "HOPMESH_LIBCUDA=/nowhere", "", "HOPMESH_LIBCUDA: stat /nowhere: no such file or directory"},
		{"auto", "HOPMESH_CUDA=off", "cpu", "GPUs are turned off by HOPMESH_CUDA=off"},
		{"auto", "", "cuda:0", "emulated GPU with 8 GiB"},
	} {
		got := elsewhere(t, c.device, strings.Fields(c.env)...)
		if got.Detected != c.detected || !strings.Contains(got.Error+got.Reason, c.says) || strings.Contains(got.Error, "\n") {
			t.Errorf("--device %s with %q: %+v", c.device, c.env, got)
		}
	}
}
