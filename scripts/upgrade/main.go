// Command upgrade runs real processes of the version before this one, of this one, and of one that
// does not exist yet, in one mesh: they are upgraded one after the other while a job trains, join
// each other, and go back. It prints what that took, and fails if anything was lost.
//
//	go run ./scripts/upgrade -previous packaging/previous -out docs/results/upgrade.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	previous := flag.String("previous", "packaging/previous", "the file that names the commit of the version before this one")
	out := flag.String("out", "", "the page to write; none: only standard output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *previous, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

// whole bounds all of it.
const whole = 40 * time.Minute

func run(ctx context.Context, previous, out string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, whole, errors.New("it took too long"))
	defer cancel()
	dir, err := os.MkdirTemp("", "upgrade-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := build(ctx, previous, dir)
	if err != nil {
		return err
	}
	p := &page{binaries: b}
	for _, s := range []struct {
		name string
		run  func(context.Context, *mesh, *page) error
	}{{"rolling", rolling}, {"later", later}} {
		m, err := newMesh(filepath.Join(dir, "mesh-"+s.name))
		if err != nil {
			return err
		}
		err = s.run(ctx, m, p)
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", s.name, err, m.ends())
		}
		if err := errors.Join(err, m.stop()); err != nil {
			fmt.Print(p) // what is known
			return err
		}
	}
	fmt.Print(p)
	if out == "" {
		return p.missed()
	}
	return errors.Join(os.WriteFile(out, []byte(p.String()), 0o644), p.missed()) //nolint:gosec // a page of the documents
}
