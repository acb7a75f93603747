// Command shape runs a mesh on this machine to try things out without a cluster. Its
// nodes have a network of a chosen rate and delay, and a fixed share of the CPUs each. It
// prints how to reach each node, runs until it is interrupted, and leaves nothing behind.
// It needs bin/hopmesh, which `make build` makes. Without root on Linux, nodes have no
// networks of their own; it then prints what it does instead.
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

	"github.com/hopmesh/hopmesh/node/shape"
)

func main() {
	nodes := flag.Int("nodes", 4, "how many nodes")
	rate := flag.String("rate", "100mbit", "what a node can send and receive, like 100mbit or 1gbit; \"\": no bound")
	delay := flag.Duration("delay", 0, "one way")
	cores := flag.Float64("cores", 0, "of the processors, for each node; 0: no bound")
	keep := flag.String("keep", "", "put the nodes' data into a folder, which stays")
	program := flag.String("program", "bin/hopmesh", "the program to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	link := shape.Link{Delay: *delay, Cores: *cores}
	if err := run(ctx, *nodes, link, *rate, *keep, *program); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes int, link shape.Link, rate, keep, program string) (err error) {
	if flag.NArg() > 0 {
		return fmt.Errorf("there is nothing to be done with %q: see -help", flag.Args())
	}
	if rate != "" {
		if link.Rate, err = shape.ParseRate(rate); err != nil {
			return err
		}
	}
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	dir := keep
	if keep == "" {
		if dir, err = os.MkdirTemp("", "hopmesh-shape"); err != nil {
			return fmt.Errorf("make a folder for the nodes: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err := os.MkdirAll(keep, 0o700); err != nil {
		return fmt.Errorf("make a folder for the nodes: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	field, err := shape.New(ctx, nodes, link)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, field.Close()) }()
	crew, err := field.Start(ctx, program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop()) }()
	for _, note := range field.Notes() {
		fmt.Printf("Note: %s.\n", note)
	}
	fmt.Printf("%d nodes are ready. Talk to one of them with its\n\n", len(crew.Nodes))
	for _, p := range crew.Nodes {
		fmt.Printf("  export HOPMESH_ADDR=%s\n", p.Addr)
	}
	fmt.Println("\nTheir logs lie beside their folders, as n1.log. Ctrl-C ends all of them.")
	for _, p := range crew.Nodes {
		select {
		case <-p.Ended():
		case <-ctx.Done():
			return nil
		}
	}
	return errors.New("all nodes have ended by themselves")
}
