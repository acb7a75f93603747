package bench

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	slow := against("speed", "GB/s", 1, "yardstick", 10, "at least 0.2x", func(r float64) bool { return r >= 0.2 })
	if slow.Holds || slow.Ratio != 0.1 {
		t.Errorf("%+v", slow)
	}
	if f := below("time", "s", 3, 3); f.Holds {
		t.Errorf("%+v", f)
	}
	var out bytes.Buffer
	if err := table(&out, Report{Machine: "a machine", Figures: []Figure{slow, below("time", "s", 1, 3)}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a machine", "FALLS SHORT", "holds", "yardstick 10 GB/s", "0.10x", "under 3 s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}

func TestMedian(t *testing.T) {
	v := []float64{9, 1, 5}
	if m := median(v); m != 5 || v[0] != 9 {
		t.Errorf("median %g of %v", m, v)
	}
}

// What the kernel says of this very process, which has surely used a little of
// both.
func TestAccounts(t *testing.T) {
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		_ = bytes.Repeat([]byte("x"), 1<<16)
	}
	used, err := cpuTime(os.Getpid())
	if err != nil || used < 10*time.Millisecond {
		t.Errorf("%s, %v", used, err)
	}
	mb, err := residentMB(os.Getpid())
	if err != nil || mb < 1 || mb > 10_000 {
		t.Errorf("%g MB, %v", mb, err)
	}
	if _, err := cpuTime(1 << 30); err == nil {
		t.Error("a process that is not there has an account")
	}
}

func TestFsync(t *testing.T) {
	if took, err := fsync(t.TempDir()); err != nil || took <= 0 {
		t.Errorf("%s, %v", took, err)
	}
}
