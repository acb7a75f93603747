//go:build cuda && !emulator

package driver

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestProbe(t *testing.T) {
	got := elsewhere(t)
	want := answered{Count: "2 <nil>", First: "<nil>", Found: Found{Version: 12040, Devices: []Info{
		{Ordinal: 0, Name: "Fake 0", Memory: 1 << 30, Major: 9, Minor: 0, Processors: 132, SharedPerBlock: 232448},
		{Ordinal: 1, Name: "Fake 1", Memory: 2 << 30, Major: 9, Minor: 1, Processors: 132, SharedPerBlock: 232448},
	}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := got.CUDA(); got != "12.4" {
		t.Errorf("version %s", got)
	}
}

// Where the dynamic linker finds the driver by itself, it is used, unless GPUs are
// turned off.
func TestTheUsualPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(fake, filepath.Join(dir, "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOPMESH_LIBCUDA=", "LD_LIBRARY_PATH=" + dir}
	if got := elsewhere(t, env...); got.Error != "" || len(got.Devices) != 2 {
		t.Errorf("got %+v", got)
	}
	for _, value := range []string{"off", "none"} {
		got := elsewhere(t, append(env, "HOPMESH_CUDA="+value)...)
		if got.Error == "" || got.Version != 0 || got.Count != "0 <nil>" {
			t.Errorf("%s: got %+v", value, got)
		}
	}
}

func TestDriversThatCannotBeUsed(t *testing.T) {
	hollow := filepath.Join(t.TempDir(), "libhollow.so")
	if out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-o", hollow, "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env     []string
		version int
		says    string
	}{
		{[]string{"HOPMESH_CUDA=off"}, 0, "turned off by HOPMESH_CUDA=off"},
		{[]string{"HOPMESH_CUDA=none"}, 0, `HOPMESH_CUDA is "none": leave it out`},
		{[]string{"HOPMESH_LIBCUDA=/nowhere/lib.so"}, 0, "no NVIDIA driver on this machine: HOPMESH_LIBCUDA: stat /nowhere/lib.so"},
		{[]string{"HOPMESH_LIBCUDA=" + text}, 0, text + ": file too short"},
		{[]string{"HOPMESH_LIBCUDA=" + hollow}, 0, "cuInit: CUDA_ERROR_NOT_FOUND (500)"},
		{[]string{"FAKE_INIT=804"}, 12040, "cuInit: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804): words of the driver"},
		{[]string{"FAKE_INIT=12345", "FAKE_VERSION=11080"}, 11080, "cuInit: CUDA error 12345 (12345)"},
		{[]string{"FAKE_INIT=100"}, 12040, "cuInit: CUDA_ERROR_NO_DEVICE (100)"},
	} {
		got := elsewhere(t, c.env...)
		if !strings.Contains(got.Error, c.says) || got.Opened != got.Error || got.Version != c.version || got.Devices != nil || got.Mapped {
			t.Errorf("%v: got %+v", c.env, got)
		}
		if got.Count != "0 <nil>" || got.First != "NoDevice" {
			t.Errorf("%v: cu says %s and %s", c.env, got.Count, got.First)
		}
	}
	got := elsewhere(t, "FAKE_DEVICES=0")
	if got.Error != "" || got.Devices != nil || got.Opened != "open GPU 0: cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101): words of the driver" {
		t.Errorf("without devices: got %+v", got)
	}
}
