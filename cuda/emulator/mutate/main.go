// Command mutate injects faults into the kernels, one at a time, and runs the tests of
// that kernel's family. Some schedule must detect each fault. This shows that the
// emulator detects the faults that it is meant to detect.
//
//	go run ./cuda/emulator/mutate -cxx g++ -flags '-std=c++20 ...' .tools/cuda/sane/*.o
//
// The arguments are the objects of the test program without faults and the flags with
// which they were compiled; make mutate-kernels passes them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience is how long a mutant may run. A hang counts as detected.
const patience = 5 * time.Minute

func main() {
	cxx := flag.String("cxx", "g++", "the compiler")
	flags := flag.String("flags", "", "what it is given")
	only := flag.String("only", "", "plant only faults whose name contains this")
	every := flag.Int("every", 1, "plant only each so many-th fault")
	turn := flag.Int("turn", 0, "which of so many: any number, so that all have their turn")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := builder{cxx: *cxx, flags: strings.Fields(*flags), objects: flag.Args()}
	some := chosen(*only, max(1, *every), max(0, *turn))
	fmt.Printf("planting %d of %d faults: -every %d -turn %d\n", len(some), len(faults), *every, *turn)
	if err := run(ctx, b, some); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// chosen returns the faults to inject.
func chosen(only string, every, turn int) []fault {
	var some []fault
	for i, f := range faults {
		if i%every == turn%every && strings.Contains(f.name, only) {
			some = append(some, f)
		}
	}
	return some
}

func run(ctx context.Context, b builder, faults []fault) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	seen := make([]string, len(faults))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range faults {
		group.Go(func() (err error) {
			seen[i], err = b.try(ctx, dir, fmt.Sprint(i), f)
			if err != nil {
				return fmt.Errorf("plant %q in %s: %w", f.name, f.file, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	missed := 0
	for i, f := range faults {
		if seen[i] == "" {
			missed++
			fmt.Printf("MISSED  %-16s %s\n", f.file, f.name)
			continue
		}
		fmt.Printf("seen    %-16s %s: %s\n", f.file, f.name, seen[i])
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d faults were not seen", missed, len(faults))
	}
	fmt.Printf("all %d faults were seen\n", len(faults))
	return nil
}

// builder compiles a kernel, and links it with the other objects.
type builder struct {
	cxx     string
	flags   []string
	objects []string
}

const (
	kernels  = "cuda/kernels"
	emulator = "cuda/emulator"
)

func (b builder) command(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, b.cxx, append(slices.Clone(b.flags), args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", b.cxx, err, out)
	}
	return nil
}

// without returns the objects except that of a kernel's source.
func (b builder) without(source string) ([]string, error) {
	object := strings.TrimSuffix(source, ".cu") + ".kernel.o"
	others := slices.DeleteFunc(slices.Clone(b.objects), func(o string) bool { return filepath.Base(o) == object })
	if len(others) != len(b.objects)-1 {
		return nil, fmt.Errorf("%s is not one of the %d objects", object, len(b.objects))
	}
	return others, nil
}

// try injects one fault and returns the first line of the test that detects it, or "".
func (b builder) try(ctx context.Context, dir, name string, f fault) (string, error) {
	// A header's fault shows in one of the files that include it.
	tree := filepath.Join(dir, name)
	if err := os.CopyFS(filepath.Join(tree, "kernels"), os.DirFS(kernels)); err != nil {
		return "", err
	}
	at, err := filepath.Abs(emulator)
	if err != nil {
		return "", err
	}
	if err := os.Symlink(at, filepath.Join(tree, "emulator")); err != nil {
		return "", err
	}
	path := filepath.Join(tree, "kernels", f.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), f.from); n != 1 {
		return "", fmt.Errorf("%q stands there %d times", f.from, n)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), f.from, f.to, 1)), 0o600); err != nil {
		return "", err
	}
	program, object := filepath.Join(tree, "test"), filepath.Join(tree, "kernel.o")
	if err := b.command(ctx, "-x", "c++", "-w", "-c", filepath.Join(tree, "kernels", f.source()), "-o", object); err != nil {
		return "", err
	}
	others, err := b.without(f.source())
	if err != nil {
		return "", err
	}
	// The mutant comes first: a template's member that is not inlined is in each object
	// that uses it, and the linker takes the first.
	if err := b.command(ctx, append([]string{object, "-o", program}, others...)...); err != nil {
		return "", err
	}
	return tell(ctx, program, f.test)
}

// tell runs a test. If it fails, it returns the first line of its output.
func tell(ctx context.Context, program, test string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	out, err := exec.CommandContext(ctx, program, test).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &exit):
		line, _, _ := strings.Cut(strings.TrimLeft(string(out), "=\n"), "\n") // sanitizers print a separator line first
		if !exit.Exited() {
			line = exit.String() + ": " + line
		}
		return line, nil
	}
	return "", err
}
