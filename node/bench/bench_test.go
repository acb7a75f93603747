package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFigures(t *testing.T) {
	slow := Against("speed", "GB/s", 1, "baseline", 10, Least(0.2))
	if slow.Holds || slow.Ratio != 0.1 || slow.Bar != "at least 0.2x" {
		t.Errorf("%+v", slow)
	}
	for _, f := range []Figure{Below("time", "s", 3, 3), AtMost("time", "s", 3.1, 3), AtLeast("speed", 3, 3.1), Against("time", "s", 3, "baseline", 1, Most(2)), Against("time", "s", 3, "baseline", 1, Exactly(1))} {
		if f.Holds || f.Bar == "" {
			t.Errorf("%+v", f)
		}
	}
	if f := Beside("time", "s", 3, "baseline", 2); f.Bar != "" || f.Ratio != 1.5 {
		t.Errorf("%+v", f)
	}
	var out bytes.Buffer
	r := &Report{Notes: []string{"all is slow"}, Figures: []Figure{slow, Below("time", "s", 1, 3), Beside("size", "MB", 3, "another", 2)}}
	if err := Page("Things", "v1", r).Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `Note: all is slow.

FIGURE  MEASURED  BASELINE          RATIO  BAR
speed   1 GB/s    baseline 10 GB/s  0.10x  at least 0.2x  FALLS SHORT
time    1 s                                under 3 s      holds
size    3 MB      another 2 MB      1.50x
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// What the kernel counts of this very process, which has used a little of both.
func TestProcesses(t *testing.T) {
	used, err := CPUTime(os.Getpid())
	for begin := time.Now(); err == nil && used < 10*time.Millisecond && time.Since(begin) < time.Minute; {
		_ = bytes.Repeat([]byte("x"), 1<<16)
		used, err = CPUTime(os.Getpid())
	}
	if err != nil || used < 10*time.Millisecond {
		t.Errorf("%s, %v", used, err)
	}
	mb, err := ResidentMB(os.Getpid())
	if err != nil || mb < 1 || mb > 10_000 {
		t.Errorf("%g MB, %v", mb, err)
	}
	if peak, err := PeakMB(os.Getpid()); err != nil || peak < mb/2 || peak > 10_000 {
		t.Errorf("%g MB at most, %v", peak, err)
	}
	if _, err := CPUTime(1 << 30); err == nil {
		t.Error("the time of a process that does not exist")
	}
	if _, err := PeakMB(1 << 30); err == nil {
		t.Error("the memory of a process that does not exist")
	}
}

// Parts that are asked for are measured and no others; all if none is asked for. The
// report is printed, and written where that is wanted.
func TestParts(t *testing.T) {
	for only, want := range map[string]string{"": "[one two]", "two": "[two]", "two,one": "[one two]"} {
		var ran []string
		s := Suite{Title: "Things"}
		for _, name := range []string{"one", "two"} {
			s.Parts = append(s.Parts, Part{name, name, func(context.Context, *Run) ([]Figure, error) {
				ran = append(ran, name)
				return []Figure{Beside(name, "s", 1, "baseline", 1)}, nil
			}})
		}
		cfg := Config{Out: filepath.Join(t.TempDir(), "things.md"), Version: "v1"}
		if only != "" {
			cfg.Only = strings.Split(only, ",")
		}
		var out bytes.Buffer
		if err := Measure(t.Context(), cfg, s, &Report{}, &out, io.Discard); err != nil || fmt.Sprint(ran) != want {
			t.Errorf("%q: %v, %v", only, ran, err)
		}
		page, err := os.ReadFile(cfg.Out)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "\n\nFIGURE") {
			t.Errorf("there is no empty line before the table of\n%s", out.String())
		}
		for _, name := range ran {
			if !strings.Contains(out.String(), "\n"+name+" ") || !strings.Contains(string(page), "\n| "+name+" ") {
				t.Errorf("%s is not in\n%s\nand\n%s", name, out.String(), page)
			}
		}
		cfg.JSON = true
		out.Reset()
		if err := Measure(t.Context(), cfg, s, &Report{}, &out, io.Discard); err != nil || !strings.Contains(out.String(), `"yardstick":"baseline"`) {
			t.Errorf("%s, %v", out.String(), err)
		}
	}
	if err := Measure(t.Context(), Config{Out: filepath.Join(t.TempDir(), "none", "things.md")}, Suite{}, &Report{}, io.Discard, io.Discard); err == nil {
		t.Error("a result is written into a folder that does not exist")
	}
}
