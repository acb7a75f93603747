package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/shape"
)

// A lab runs cells and keeps what they give. One goroutine uses it.
type lab struct {
	python   python
	program  string // ours
	folder   string // of graphs and partitions
	kept     history
	takes    takes
	version  string // of our program
	progress io.Writer
}

func (b *lab) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, format+"\n", args...)
}

// finish runs the repetitions of cells that are not kept yet. Within a repetition and a model, sides
// take turns.
func (b *lab) finish(ctx context.Context, list []cell, repetitions int) error {
	for n := 1; n <= repetitions; n++ {
		for _, s := range setups(list) {
			var todo []cell
			for _, c := range list {
				if c.setup == s && !b.kept.done(c, n, b.takes) {
					todo = append(todo, c)
				}
			}
			if len(todo) == 0 {
				continue
			}
			// A model's cells may stand in several parts of the list.
			slices.SortStableFunc(todo, func(x, y cell) int {
				return cmp.Or(cmp.Compare(x.layers, y.layers), cmp.Compare(x.hidden, y.hidden))
			})
			if err := b.on(ctx, s, todo, n); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
	}
	return nil
}

// setups returns the setups of cells, in the order of the list.
func setups(list []cell) (some []setup) {
	for _, c := range list {
		if !slices.Contains(some, c.setup) {
			some = append(some, c.setup)
		}
	}
	return some
}

// on runs cells of one setup.
func (b *lab) on(ctx context.Context, s setup, todo []cell, repetition int) (err error) {
	field, err := shape.New(ctx, s.nodes, s.link())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, field.Close()) }()
	if notes := field.Notes(); len(notes) > 0 {
		return fmt.Errorf("this needs namespaces and shares of the processors, and here %s", strings.Join(notes, "; "))
	}
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(s.data.name, " ", "-"), s.nodes)
	m := &mesh{setup: s, program: b.program, folder: filepath.Join(b.folder, "mesh-"+name)}
	p := &partitions{folder: filepath.Join(b.folder, "parts-"+name)}
	for _, c := range todo {
		began := time.Now()
		r, err := b.one(ctx, field, m, p, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Cell, r.Settings, r.Repetition, r.Version, r.Machine = c.key(), c.settings(), repetition, b.version, b.takes.machine
		if c.side.framework != "" {
			r.Script = b.takes.script
		}
		if err != nil {
			r.Error = strings.Join(strings.Fields(err.Error()), " ")
		}
		b.say("%d: %s (%.0f s)", repetition, r, time.Since(began).Seconds())
		if err := b.kept.Add(r); err != nil {
			return err
		}
	}
	return nil
}

// String describes a run in a line.
func (r run) String() string {
	if r.Error != "" {
		return r.Cell + ": FAILED: " + r.Error
	}
	return fmt.Sprintf("%s: %.2f s, memory %.2f GB, accuracy %.3f; others took %.2f cores", r.Cell, r.Seconds, float64(r.Memory)/1e9, r.Accuracy, r.Others)
}

// one runs a cell once.
func (b *lab) one(ctx context.Context, field *shape.Field, m *mesh, p *partitions, c cell) (run, error) {
	switch {
	case c.side.framework == "" && c.side.loop:
		return m.loop(ctx, field, b.python, c)
	case c.side.framework == "":
		return m.train(ctx, field, c)
	}
	if err := p.make(ctx, b, field, m); err != nil {
		return run{}, err
	}
	logs := filepath.Join(b.folder, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return run{}, err
	}
	j := job{cell: c, parts: p.folder, classes: p.Classes, weights: filepath.Join(logs, "weights.pt"), logs: logs}
	r, err := b.python.train(ctx, field, j)
	if err != nil || c.side.loop {
		return r, err
	}
	e, err := b.python.ask(ctx, "score", "--graph", filepath.Join(p.folder, "whole.pt"), "--weights", j.weights,
		"--hidden", fmt.Sprint(c.hidden), "--classes", fmt.Sprint(p.Classes), "--fanouts", comma(c.fanouts))
	r.Accuracy = e.Test
	return r, err
}

// Partitions are a graph in the frameworks' formats. They are made of the shards that our nodes
// have, and stay.
type partitions struct {
	folder  string
	Classes int `json:"classes"`
}

// make makes them, unless they are there.
func (p *partitions) make(ctx context.Context, b *lab, field *shape.Field, m *mesh) error {
	made := filepath.Join(p.folder, "made.json")
	if text, err := os.ReadFile(made); err == nil {
		return json.Unmarshal(text, p)
	}
	b.say("%s: partitions for DistDGL", m.setup)
	if err := os.RemoveAll(p.folder); err != nil {
		return err
	}
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return err
	}
	return m.with(ctx, field, func(crew *shape.Crew) error {
		d, err := crew.Nodes[0].API.Dataset(ctx, dataset(m.copies()[0]))
		if err != nil {
			return err
		}
		files, owners, err := owned(crew, d)
		if err != nil {
			return err
		}
		spec, err := json.Marshal(map[string]any{"shards": files, "owners": owners, "parts": m.nodes, "out": p.folder, "cuts": []string{"metis", "own"}})
		if err != nil {
			return err
		}
		file := filepath.Join(p.folder, "spec.json")
		if err := os.WriteFile(file, spec, 0o600); err != nil {
			return err
		}
		if _, err := b.python.ask(ctx, "prepare", file); err != nil {
			return err
		}
		p.Classes = d.Classes
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		return os.WriteFile(made, text, 0o600)
	})
}
