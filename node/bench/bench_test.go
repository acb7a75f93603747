package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
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

// Parts that are asked for are measured, and no others; all where none is.
func TestPartsByName(t *testing.T) {
	for only, want := range map[string]string{"": "[one two]", "two": "[two]", "two,one": "[one two]"} {
		var ran []string
		parts := func(*bench) (list []part) {
			for _, name := range []string{"one", "two"} {
				list = append(list, part{name, name, func(context.Context) ([]Figure, error) {
					ran = append(ran, name)
					return nil, nil
				}})
			}
			return list
		}
		cfg := Config{}
		if only != "" {
			cfg.Only = strings.Split(only, ",")
		}
		if err := suite(t.Context(), cfg, io.Discard, io.Discard, parts); err != nil || fmt.Sprint(ran) != want {
			t.Errorf("%q: %v, %v", only, ran, err)
		}
	}
	if names := StrategyParts(); len(names) == 0 || slices.Contains(names, "") {
		t.Errorf("%q", names)
	}
}
