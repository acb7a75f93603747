package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	loaded := filepath.Join(t.TempDir(), "version")
	if err := os.WriteFile(loaded, []byte("NVRM version: 570.86\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := loaded + ".none"
	for _, c := range []struct {
		want, driver, device, says string
		err                        error
	}{
		{"auto", none, "cpu", "no NVIDIA driver", nil},
		{"auto", loaded, "cpu", "does not use it", nil},
		{"cpu", loaded, "cpu", "asked for", nil},
		{"cuda", loaded, "", "--device cpu", ErrNoGPU},
		{"cuda:0", none, "", "device cuda:0", ErrNoGPU},
		{"cuda:15", none, "", "device cuda:15", ErrNoGPU},
		{"", none, "", "auto, cpu, cuda or cuda:N", ErrDevice},
		{"gpu", none, "", `device "gpu"`, ErrDevice},
		{"CUDA", none, "", "auto, cpu", ErrDevice},
		{"cuda:", none, "", "auto, cpu", ErrDevice},
		{"cuda:-1", none, "", "auto, cpu", ErrDevice},
		{"cuda:0:1", none, "", "auto, cpu", ErrDevice},
		{"cuda:999", none, "", "auto, cpu", ErrDevice},
		{"cpu:0", none, "", "auto, cpu", ErrDevice},
	} {
		device, reason, err := detect(c.want, c.driver)
		says := reason
		if err != nil {
			says = err.Error()
		}
		if device != c.device || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || !strings.Contains(says, c.says) {
			t.Errorf("%q: got %q, %q, %v", c.want, device, reason, err)
		}
	}
}

func TestDetectLooksAtThisMachine(t *testing.T) {
	device, reason, err := Detect("auto")
	_, missing := os.Stat("/proc/driver/nvidia/version")
	if err != nil || device != "cpu" || strings.HasPrefix(reason, "no NVIDIA driver") != (missing != nil) {
		t.Fatalf("got %q, %q, %v", device, reason, err)
	}
}
