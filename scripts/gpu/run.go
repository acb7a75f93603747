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

// Results of a step.
const (
	good    = "ok"
	failed  = "failed"
	late    = "too late" // it was killed at its limit
	missing = "left out"
)

// emulated is how many times longer steps may take on the emulated driver.
const emulated = 6

// patience is how long after a step's end its process group may still hold its output
// open.
const patience = 5 * time.Second

// outcome is the result of a step.
type outcome struct {
	Step    string   `json:"step"`
	What    string   `json:"what"`
	Ended   string   `json:"ended"`
	Seconds float64  `json:"seconds"`
	Said    string   `json:"said,omitempty"` // its last line if it failed, or what is missing
	Figures []number `json:"figures,omitempty"`
}

// number is a figure that a step printed.
type number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

func (r outcome) String() string {
	said := fmt.Sprintf("%s in %.1f s", r.Ended, r.Seconds)
	if r.Said != "" {
		said += ": " + r.Said
	}
	return said
}

// runner runs steps in a bundle, and keeps their output in a folder.
type runner struct {
	bundle, out, scratch string
	tiny                 bool
	begun                map[string]chan outcome
	ended                map[string]string
}

// begin starts a step in the background.
func (r *runner) begin(ctx context.Context, s step) {
	if r.begun == nil {
		r.begun = map[string]chan outcome{}
	}
	done := make(chan outcome, 1)
	r.begun[s.name] = done
	go func() { done <- r.now(ctx, s) }()
}

// run runs a step, or waits for it if it has started.
func (r *runner) run(ctx context.Context, s step) outcome {
	if r.ended == nil {
		r.ended = map[string]string{}
	}
	var done outcome
	switch {
	case s.after != "" && r.ended[s.after] != good:
		done = outcome{Step: s.name, What: s.what, Ended: missing, Said: s.after + " has not ended well"}
	case r.begun[s.name] != nil:
		done = <-r.begun[s.name]
	case s.slow && r.tiny:
		done = outcome{Step: s.name, What: s.what, Ended: missing, Said: "the emulated driver takes too long"}
	case ctx.Err() != nil:
		done = outcome{Step: s.name, What: s.what, Ended: missing, Said: "there is no time left"}
	default:
		done = r.now(ctx, s)
	}
	r.ended[s.name] = done.Ended
	return done
}

// now runs a step and waits for its end.
func (r *runner) now(ctx context.Context, s step) outcome {
	done := outcome{Step: s.name, What: s.what}
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

// shell runs a line and everything that it starts in a process group, which is killed as
// a whole.
func (r *runner) shell(ctx context.Context, dir, line string, to io.Writer) error {
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir, c.Stdout, c.Stderr = dir, to, to
	c.Env = append(os.Environ(), r.environment()...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = patience
	return c.Run()
}

// environment returns the variables that steps' lines use. It extends PATH, as CUDA's
// programs are often not in it.
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

// arch returns the GPU's architecture as nvcc names it or, if it is unknown, the oldest
// that the kernels support.
func arch() string {
	out, err := exec.Command("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || line == "" {
		return "sm_80"
	}
	return "sm_" + strings.ReplaceAll(line, ".", "")
}

// gpu returns the GPU's name with its driver's version, or "".
func gpu() string {
	out, err := exec.Command("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// has reports whether a program can be run. For python3 it also checks the modules listed
// after it.
func (r *runner) has(ctx context.Context, dir, need string) bool {
	program, modules, _ := strings.Cut(need, " ")
	line := "command -v " + program
	if modules != "" {
		line = program + " -c 'import " + strings.ReplaceAll(modules, " ", ", ") + "'"
	}
	return r.shell(ctx, dir, line, io.Discard) == nil
}

// figures returns the figures in a step's output, the last of each name.
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

// last returns the last line that describes an error.
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
