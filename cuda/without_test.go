//go:build !cuda

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThisBuildHasNoGPU(t *testing.T) {
	loaded := filepath.Join(t.TempDir(), "version")
	if err := os.WriteFile(loaded, []byte("NVRM version: 570.86\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{
		loaded:           "processor only, though an NVIDIA driver is loaded",
		loaded + ".none": "processor only",
	} {
		if list, err := without(file); list != nil || !errors.Is(err, errBuild) || !strings.HasSuffix(err.Error(), says) && !strings.Contains(err.Error(), says+" on this machine") {
			t.Errorf("got %v, %v", list, err)
		}
	}
	if device, reason, err := Detect("auto"); device != "cpu" || !strings.Contains(reason, "computes on the processor only") || err != nil {
		t.Errorf("got %q, %q, %v", device, reason, err)
	}
	if _, _, err := Detect("cuda:3"); !errors.Is(err, ErrNoGPU) || !errors.Is(err, errBuild) {
		t.Errorf("got %v", err)
	}
	if d, err := Open("cuda:0"); d != nil || !errors.Is(err, ErrNoGPU) {
		t.Errorf("got %v, %v", d, err)
	}
}
