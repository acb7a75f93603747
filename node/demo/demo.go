// Package demo demonstrates a mesh of several nodes in this process. It loads a graph and
// trains a model by two strategies. Then it kills the leader during another training,
// shows which node takes over and that nothing is lost, and removes everything. It uses
// nodes as any program could, and has no logic of its own.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// DefaultStrategy is used if none is given.
const DefaultStrategy = "leap"

// Config configures a demo.
type Config struct {
	Nodes    int // at least 3
	Strategy string
	Epochs   int    // of training
	Device   string // of all nodes
	JSON     bool
	Version  string
}

// Report is what --json prints.
type Report struct {
	Nodes           int          `json:"nodes"`
	FormedSeconds   float64      `json:"formed_seconds"`   // from the start to a leader and all nodes in the plan
	VotersSeconds   float64      `json:"voters_seconds"`   // until the mesh survives the loss of any one node
	Leader          string       `json:"leader"`           // before the kill
	NewLeader       string       `json:"new_leader"`       // after it
	TakeoverSeconds float64      `json:"takeover_seconds"` // from the kill to the new leader
	Members         []api.Member `json:"members"`          // as the new leader sees them
	Dataset         api.Dataset  `json:"dataset"`          // in its final state
	ImportSeconds   float64      `json:"import_seconds"`   // from the start of the import to all shards in place
	Training        []Training   `json:"training"`         // by the strategy, and by centric
	Survived        Survived     `json:"survived"`         // the training in which a node died
	ServedSeconds   float64      `json:"served_seconds"`   // from the kill until living nodes own all shards
}

// Survived describes how a training went on after a node's death.
type Survived struct {
	Nodes       []string `json:"nodes"`
	Seconds     float64  `json:"seconds"` // from the kill to the first epoch that was trained without the dead node
	SameWeights bool     `json:"same_weights"`
}

// Run runs the demo. It takes some ten seconds, most of them spent waiting until the new
// nodes have been stable long enough to vote.
func Run(ctx context.Context, cfg Config, stdout, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "hopmesh-demo")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	f := fleet.New(dir, cfg.Version)
	f.Device = cfg.Device
	defer func() { err = errors.Join(err, f.Stop(), os.RemoveAll(dir)) }()
	s := &show{fleet: f, dir: dir, out: stdout, begin: time.Now(), whole: cfg.Strategy == "pipe" || cfg.Strategy == "graph"}
	if cfg.JSON {
		s.out = stderr
	}
	report, err := s.run(ctx, cfg)
	if err != nil {
		return err
	}
	if cfg.JSON {
		return json.NewEncoder(stdout).Encode(report)
	}
	return nil
}

// show is one run of the demo.
type show struct {
	fleet *fleet.Fleet
	dir   string
	out   io.Writer
	begin time.Time
	whole bool // a step is the whole graph

	killed atomic.Int64 // when the leader was killed, in nanoseconds
}

func (s *show) killedAt() time.Time { return time.Unix(0, s.killed.Load()) }

func (s *show) run(ctx context.Context, cfg Config) (Report, error) {
	f, n := s.fleet, cfg.Nodes
	r := Report{Nodes: n}
	s.say("One machine, %d nodes, each with one UDP port on loopback. Nothing is installed, nothing stays behind.\n", n)
	first, err := f.Launch(ctx)
	if err != nil {
		return r, err
	}
	s.note("n1 has founded a mesh at %s", first.Addr())
	for range n - 1 {
		if _, err := f.Launch(ctx); err != nil {
			return r, err
		}
	}
	if err := f.Until(ctx, "all nodes are in", f.AllReady); err != nil {
		return r, err
	}
	r.FormedSeconds = s.note("all %d nodes are in, by token, over mutual TLS", n)
	voters := 3
	if n >= 5 {
		voters = 5
	}
	if err := f.Until(ctx, "enough nodes vote", func() bool { return first.Voters() == voters }); err != nil {
		return r, err
	}
	r.VotersSeconds = s.note("%d of them vote: the mesh survives the loss of any one\n", voters)
	s.table(first)
	if err := s.bring(ctx, &r); err != nil {
		return r, err
	}
	if err := s.train(ctx, &r, cfg.Strategy, cfg.Epochs); err != nil {
		return r, err
	}
	survivor, err := s.survive(ctx, &r, cfg.Strategy, cfg.Epochs)
	if err != nil {
		return r, err
	}
	return r, s.served(ctx, &r, survivor)
}

// takeover kills the leader, waits until a new leader is elected and the death is known,
// and returns the new leader.
func (s *show) takeover(ctx context.Context, r *Report) (*fleet.Node, error) {
	f := s.fleet
	f.Kill(r.Leader)
	killed := time.Now()
	s.killed.Store(killed.UnixNano())
	s.say("\nKilled %s, the leader, without a word.", r.Leader)
	err := f.Until(ctx, "another node leads", func() bool {
		r.NewLeader = f.Leader()
		return r.NewLeader != "" && r.NewLeader != r.Leader
	})
	if err != nil {
		return nil, err
	}
	r.TakeoverSeconds = time.Since(killed).Seconds()
	s.note("%s leads, %.1f s after the kill", r.NewLeader, r.TakeoverSeconds)
	var survivor *fleet.Node
	for _, n := range f.Nodes {
		if n.Name == r.NewLeader {
			survivor = n
		}
	}
	err = f.Until(ctx, "the dead node is noticed", func() bool {
		r.Members = survivor.Members()
		return slices.ContainsFunc(r.Members, func(m api.Member) bool { return m.Name == r.Leader && m.Status == "failed" })
	})
	if err != nil {
		return nil, err
	}
	s.note("all know that %s has failed", r.Leader)
	return survivor, nil
}

func (s *show) table(n *fleet.Node) {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "  NAME\tADDRESS\tSTATUS\tROLE")
	for _, m := range n.Members() {
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", m.Name, m.Address, m.Status, m.Role)
	}
	_ = w.Flush()
}

func (s *show) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

// note prints a message with the seconds since the start, and returns them.
func (s *show) note(format string, args ...any) float64 {
	at := time.Since(s.begin).Seconds()
	s.say("%5.1f s  "+format, append([]any{at}, args...)...)
	return at
}
