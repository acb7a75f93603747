// Command mutate plants faults in the kernels, one after the other, and runs the tests
// of that kernel's family: each fault has to be seen in some schedule. It is how we
// know that the emulator finds what it is there to find.
//
//	go run ./cuda/emulator/mutate -cxx g++ -flags '-std=c++20 ...'
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

// patience is how long a mutant may run: what hangs is seen, too.
const patience = 5 * time.Minute

func main() {
	cxx := flag.String("cxx", "g++", "the compiler")
	flags := flag.String("flags", "", "what it is given")
	only := flag.String("only", "", "plant only faults whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, builder{*cxx, strings.Fields(*flags)}, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b builder, only string) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	faults := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !strings.Contains(f.name, only) })
	if err := b.base(ctx, dir); err != nil {
		return err
	}
	if err := b.sound(ctx, dir); err != nil {
		return err
	}
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

// A builder compiles and links test programs.
type builder struct {
	cxx   string
	flags []string
}

const (
	kernels  = "cuda/kernels"
	emulator = "cuda/emulator"
)

// parts are the emulator's files that running kernels takes.
var parts = []string{"address.cc", "block.cc", "fiber.cc", "launch.cc"}

// base compiles, into dir, what no fault is planted in.
func (b builder) base(ctx context.Context, dir string) error {
	tests, err := filepath.Glob(emulator + "/test/*.cc")
	if err != nil {
		return err
	}
	tests = slices.DeleteFunc(tests, func(f string) bool { return filepath.Base(f) == "driver_test.cc" })
	for _, p := range parts {
		tests = append(tests, filepath.Join(emulator, p))
	}
	families, err := filepath.Glob(kernels + "/*.cu")
	if err != nil {
		return err
	}
	tests = append(tests, families...)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, source := range tests {
		group.Go(func() error {
			return b.compile(ctx, source, filepath.Join(dir, filepath.Base(source)+".o"))
		})
	}
	return group.Wait()
}

// sound links what has no fault, and says what its tests fail in.
func (b builder) sound(ctx context.Context, dir string) error {
	program := filepath.Join(dir, "sound")
	objects, err := filepath.Glob(dir + "/*.o")
	if err != nil {
		return err
	}
	if err := b.command(ctx, append(objects, "-o", program)...); err != nil {
		return err
	}
	said, err := tell(ctx, program)
	if err == nil && said != "" {
		err = fmt.Errorf("the tests fail without any fault: %s", said)
	}
	return err
}

func (b builder) compile(ctx context.Context, source, object string) error {
	return b.command(ctx, append(slices.Clone(b.flags), "-x", "c++", "-w", "-c", source, "-o", object)...)
}

func (b builder) command(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, b.cxx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", b.cxx, err, out)
	}
	return nil
}

// try plants one fault and returns the first sentence in which a test tells of it, ""
// if none does.
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
	if err := b.compile(ctx, filepath.Join(tree, "kernels", f.source()), object); err != nil {
		return "", err
	}
	objects, err := filepath.Glob(dir + "/*.o")
	if err != nil {
		return "", err
	}
	objects = slices.DeleteFunc(objects, func(o string) bool { return filepath.Base(o) == f.source()+".o" })
	if err := b.command(ctx, append(append([]string{object}, objects...), "-o", program)...); err != nil {
		return "", err
	}
	return tell(ctx, program, f.test)
}

// tell runs tests, or all, and returns the first line of what they say if they fail.
func tell(ctx context.Context, program string, tests ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	out, err := exec.CommandContext(ctx, program, tests...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &exit):
		line, _, _ := strings.Cut(string(out), "\n")
		if !exit.Exited() {
			line = exit.String() + ": " + line
		}
		return line, nil
	}
	return "", err
}
