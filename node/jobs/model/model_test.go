package model

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/jobs"
)

// fixed is a plan that a test sets.
type fixed struct{ state *plan.State }

func (f *fixed) State() *plan.State { return f.state }

// Shards that the disk has no room for are not asked for.
func TestShardsThatFindNoRoom(t *testing.T) {
	m := New(Config{Name: "n2"})
	if err := m.fits(t.TempDir(), "g", 3, 1<<20); err != nil {
		t.Error(err)
	}
	if err := m.fits(t.TempDir(), "g", 1, 1<<62); err == nil || !strings.Contains(err.Error(), "node n2 lacks 1 shard of dataset g, which takes ") {
		t.Errorf("of one shard: %v", err)
	}
	if err := m.fits(t.TempDir(), "g", 3, 1<<62); err == nil || !strings.Contains(err.Error(), "node n2 lacks 3 shards of dataset g") || !strings.Contains(err.Error(), "free some space") {
		t.Error(err)
	}
}

// A damaged model is replaced only while its job has ended: one that was resumed meanwhile
// writes newer ones. When the job is gone, so is its damage.
func TestMendReadsThePlanAgain(t *testing.T) {
	dir := t.TempDir()
	borrowed, here := filepath.Join(dir, "borrowed"), filepath.Join(dir, "here")
	ended := plan.Job{ID: "j1", Key: "k", State: plan.Done, Generation: 7}
	resumed := ended
	resumed.State, resumed.Generation = plan.Running, 9
	again := ended
	again.Generation = 9
	p, board := &fixed{}, damage.New(slog.New(slog.DiscardHandler))
	m := New(Config{Plan: p, Damage: board, Log: slog.New(slog.DiscardHandler)})
	for _, c := range []struct {
		now   plan.Job
		mends bool
	}{{resumed, false}, {again, false}, {ended, true}} {
		for path, text := range map[string]string{borrowed: "borrowed", here: "here"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m.damaged.Store("j1", true)
		p.state = &plan.State{Jobs: map[string]plan.Job{"j1": c.now}}
		at := m.mend(ended, borrowed, here, os.ErrInvalid)
		if b, err := os.ReadFile(here); err != nil || (string(b) == "borrowed") != c.mends || (at == here) != c.mends {
			t.Errorf("%v: %q at %s (%v)", c.now, b, at, err)
		}
	}
	m.damaged.Store("j1", true)
	board.Found(damage.Model, "j1", "it is damaged")
	m.tidy()
	if len(board.Own()) != 1 {
		t.Error("the damage of a job that is there was removed")
	}
	p.state = &plan.State{}
	m.tidy()
	if list := board.Own(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// named is a mesh of which nothing but this node's id is known.
type named struct{ Mesh }

func (named) ID() string { return "a" }

// A job that ends or is resumed while its model is looked for counts as it was found.
func TestSourcesAreFoundOnce(t *testing.T) {
	ended := plan.Job{ID: "j1", Key: "k", State: plan.Stopped}
	finds := 0
	m := New(Config{Mesh: named{}, Plan: &fixed{&plan.State{}}, Runner: new(jobs.Runner), Log: slog.New(slog.DiscardHandler), Find: func(context.Context, string) (*plan.State, plan.Job, error) {
		j := ended
		if finds++; finds > 1 {
			j.State = plan.Queued
		}
		return &plan.State{}, j, nil
	}})
	if _, err := m.Source(t.Context(), "j1"); err == nil || !strings.Contains(err.Error(), "job j1 was stopped before it began, so there is no model") || finds != 1 {
		t.Errorf("found %d times: %v", finds, err)
	}
}
