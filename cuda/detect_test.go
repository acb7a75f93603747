package cuda

import (
	"errors"
	"strings"
	"testing"
)

var errLook = errors.New("nothing to see")

func TestDetect(t *testing.T) {
	none := func() ([]candidate, error) { return nil, errLook }
	empty := func() ([]candidate, error) { return nil, nil }
	two := func() ([]candidate, error) { return []candidate{{"A", errors.New("it is old")}, {"B", nil}}, nil }
	old := func() ([]candidate, error) { return []candidate{{"A", errors.New("it is old")}}, nil }
	never := func() ([]candidate, error) {
		t.Error("looked for GPUs")
		return nil, errLook
	}
	for _, c := range []struct {
		want         string
		look         func() ([]candidate, error)
		device, says string
		err          error
	}{
		{"cpu", never, "cpu", "asked for", nil},
		{"auto", none, "cpu", "nothing to see", nil},
		{"auto", empty, "cpu", "finds no GPU", nil},
		{"auto", old, "cpu", "GPU 0 is A, but it is old", nil},
		{"auto", two, "cuda:1", "B", nil},
		{"cuda", none, "", "device cuda: no GPU can be used: nothing to see; use --device auto or --device cpu", ErrNoGPU},
		{"cuda", none, "", "", errLook},
		{"cuda:0", empty, "", "the NVIDIA driver finds no GPU", ErrNoGPU},
		{"cuda", two, "", "GPU 0 is A, but it is old", ErrNoGPU},
		{"cuda:1", two, "cuda:1", "B was asked for", nil},
		{"cuda:2", two, "", "GPU 2 is not there: the last is 1", ErrNoGPU},
		{"", never, "", "auto, cpu, cuda or cuda:N", ErrDevice},
		{"gpu", never, "", `device "gpu"`, ErrDevice},
		{"CUDA", never, "", "auto, cpu", ErrDevice},
		{"cuda:", never, "", "auto, cpu", ErrDevice},
		{"cuda:-1", never, "", "auto, cpu", ErrDevice},
		{"cuda:0:1", never, "", "auto, cpu", ErrDevice},
		{"cuda:999", never, "", "auto, cpu", ErrDevice},
		{"cpu:0", never, "", "auto, cpu", ErrDevice},
	} {
		device, reason, err := detect(c.want, c.look)
		says := reason
		if err != nil {
			says = err.Error()
		}
		if device != c.device || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || !strings.Contains(says, c.says) {
			t.Errorf("%q: got %q, %q, %v", c.want, device, reason, err)
		}
	}
}
