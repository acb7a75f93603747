package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How a step ended.
const (
	good    = "ok"
	failed  = "failed"
	late    = "too late" // it was ended at its limit
	missing = "left out"
)

// emulated is how much longer steps may take on the emulated driver.
const emulated = 6

// patience is how long after its end a step's group may still hold what it writes to.
const patience = 5 * time.Second

// A result is a step that was done, or left out.
type result struct {
	Step    string   `json:"step"`
	What    string   `json:"what"`
	Ended   string   `json:"ended"`
	Seconds float64  `json:"seconds"`
	Said    string   `json:"said,omitempty"` // its last line where it is not good, or what is missing
	Figures []number `json:"figures,omitempty"`
}

// A number is a figure that a step told.
type number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

func (r result) String() string {
	said := fmt.Sprintf("%s in %.1f s", r.Ended, r.Seconds)
	if r.Said != "" {
		said += ": " + r.Said
	}
	return said
}

// A runner runs steps in a bundle, and keeps what they say in a folder.
type runner struct {
	bundle, out, scratch string
	tiny                 bool
	begun                map[string]chan result
	ended                map[string]string
}

// begin runs a step beside the others.
func (r *runner) begin(ctx context.Context, s step) {
	if r.begun == nil {
		r.begun = map[string]chan result{}
	}
	done := make(chan result, 1)
	r.begun[s.name] = done
	go func() { done <- r.now(ctx, s) }()
}

// run runs a step, or waits for it if it has begun.
func (r *runner) run(ctx context.Context, s step) result {
	if r.ended == nil {
		r.ended = map[string]string{}
	}
	var done result
	switch {
	case s.after != "" && r.ended[s.after] != good:
		done = result{Step: s.name, What: s.what, Ended: missing, Said: s.after + " has not ended well"}
	case r.begun[s.name] != nil:
		done = <-r.begun[s.name]
	case s.slow && r.tiny:
		done = result{Step: s.name, What: s.what, Ended: missing, Said: "the emulated driver takes too long"}
	case ctx.Err() != nil:
		done = result{Step: s.name, What: s.what, Ended: missing, Said: "there is no time left"}
	default:
		done = r.now(ctx, s)
	}
	r.ended[s.name] = done.Ended
	return done
}

// now runs a step and waits for its end.
func (r *runner) now(ctx context.Context, s step) result {
	done := result{Step: s.name, What: s.what}
	dir := filepath.Join(r.bundle, s.dir)
	for _, need := range s.needs {
		if !r.has(ctx, dir, need) {
			done.Ended, done.Said = missing, need+" is not here"
			return done
		}
	}
	log, err := os.Create(filepath.Join(r.out, s.name+".log"))
	if err != nil {
		done.Ended, done.Said = failed, err.Error()
		return done
	}
	defer log.Close()
	limit := s.limit
	if r.tiny {
		limit *= emulated
	}
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	var said bytes.Buffer
	begun := time.Now()
	err = r.shell(limited, dir, s.run, io.MultiWriter(log, &said))
	done.Seconds = time.Since(begun).Seconds()
	done.Figures = figures(said.String())
	if err == nil && strings.Contains(said.String(), "no tests to run") {
		err = errors.New("there are no tests of this name")
	}
	switch {
	case err == nil:
		done.Ended = good
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		done.Ended, done.Said = late, fmt.Sprintf("ended after %.0f s", done.Seconds)
	default:
		done.Ended, done.Said = failed, last(said.String(), err)
	}
	return done
}

// shell runs a line with all that it starts in a group of their own, which ends as a
// whole.
func (r *runner) shell(ctx context.Context, dir, line string, to io.Writer) error {
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir, c.Stdout, c.Stderr = dir, to, to
	c.Env = append(os.Environ(), r.environment()...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = patience
	return c.Run()
}

// environment is what steps' lines name. CUDA's programs are often in no path.
func (r *runner) environment() []string {
	tiny, epochs := "", "30"
	if r.tiny {
		tiny, epochs = "-tiny", "2"
	}
	return []string{
		"BUNDLE=" + r.bundle, "SCRATCH=" + r.scratch, "OUT=" + r.out, "TINY=" + tiny, "EPOCHS=" + epochs, "ARCH=" + arch(),
		"PATH=" + os.Getenv("PATH") + ":/usr/local/cuda/bin",
	}
}

// arch is the GPU's family as nvcc has it, the oldest that the kernels are for if it
// can't be had.
func arch() string {
	out, err := exec.Command("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || line == "" {
		return "sm_80"
	}
	return "sm_" + strings.ReplaceAll(line, ".", "")
}

// has says whether a program can be run: python3 with the modules named behind it.
func (r *runner) has(ctx context.Context, dir, need string) bool {
	program, modules, _ := strings.Cut(need, " ")
	line := "command -v " + program
	if modules != "" {
		line = program + " -c 'import " + strings.ReplaceAll(modules, " ", ", ") + "'"
	}
	return r.shell(ctx, dir, line, io.Discard) == nil
}

// figures are those that were told, the last of each name.
func figures(said string) []number {
	var all []number
	at := map[string]int{}
	for line := range strings.Lines(said) {
		words := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(words) != 4 || words[0] != "figure" {
			continue
		}
		value, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			continue
		}
		n := number{words[1], value, words[3]}
		if i, again := at[n.Name]; again {
			all[i] = n
			continue
		}
		at[n.Name] = len(all)
		all = append(all, n)
	}
	return all
}

// last is the last line that says what is wrong.
func last(said string, err error) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		if line != "" && line != "FAIL" && line != "PASS" {
			return line
		}
	}
	return err.Error()
}
