//go:build cuda && !emulator

package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gorgonia.org/cu"
)

// Tests run with a driver made of testdata/fake.c. The library is opened once a
// process, so what other drivers do is asked of this program run anew.
func TestMain(m *testing.M) {
	if os.Getenv("DRIVER_TEST_PROBE") != "" {
		probed()
		return
	}
	dir, err := os.MkdirTemp("", "driver")
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var fake string // the path of the driver for tests

func build(dir string) error {
	fake = filepath.Join(dir, "libfake.so")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-Iinclude", "-o", fake, "testdata/fake.c").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the driver for tests: %w: %s", err, out)
	}
	return os.Setenv("HOPMESH_LIBCUDA", fake)
}

// answered is what a process found.
type answered struct {
	Found
	Error, Opened string
	Mapped        bool // whether the library was there before it was asked for
	// Count and First are what cu says itself of how many devices there are, and
	// of the first.
	Count, First string
}

func probed() {
	var a answered
	maps, err := os.ReadFile("/proc/self/maps")
	a.Mapped = err != nil || strings.Contains(string(maps), "libfake.so")
	if a.Found, err = Probe(); err != nil {
		a.Error = err.Error()
	}
	n, err := cu.NumDevices()
	a.Count = fmt.Sprint(n, err)
	_, err = cu.GetDevice(0)
	a.First = fmt.Sprint(err)
	d, err := Open(0)
	if err != nil {
		a.Opened = err.Error()
	} else if err := d.Close(); err != nil {
		a.Opened = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		os.Exit(1)
	}
}

// elsewhere looks for devices in a process with these variables.
func elsewhere(t *testing.T, env ...string) answered {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), "DRIVER_TEST_PROBE=1"), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", env, err)
	}
	var a answered
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v: %q: %v", env, out, err)
	}
	return a
}

// opened is a device that is closed with the test.
func opened(t *testing.T) *Device {
	t.Helper()
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// do runs f on the device, and fails the test with its error.
func do(t *testing.T, d *Device, f func(*Thread) error) {
	t.Helper()
	if err := d.Do(f); err != nil {
		t.Fatal(err)
	}
}
