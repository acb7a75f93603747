package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

const (
	voters = 3
	epochs = 40 // of the job that is upgraded under; enough that it outlasts all restarts
	shards = 12
)

// generate makes a graph.
func (m *mesh) generate(ctx context.Context, name string, vertices uint64, copies int) error {
	_, err := m.nodes[0].GenerateDataset(ctx, api.GenerateRequest{
		Name: name, Kind: "sbm", Vertices: vertices, Edges: 15 * vertices, Features: 128, Classes: 4,
		DatasetOptions: api.DatasetOptions{Shards: shards, Replicas: &copies, Seed: 1},
	}, func(api.DatasetEvent) {})
	return err
}

// recipe is what jobs train.
func recipe(dataset string, epochs int, deterministic bool) api.TrainRequest {
	layers, hidden, batch, every, seed := 2, 256, 2000, 20, uint64(1)
	return api.TrainRequest{
		Dataset: dataset, Model: "sage", Layers: &layers, Hidden: &hidden, Batch: &batch, Fanout: []int{15, 15}, Epochs: &epochs, EvalEvery: &every,
		Seed: &seed, Strategy: "leap", Deterministic: deterministic,
	}
}

// weights waits for the end of a job, and returns the hashes of its weights after each epoch.
func weights(ctx context.Context, on *node, id string, within time.Duration) (list []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New("it takes too long"))
	defer cancel()
	j, err := on.WatchJob(ctx, id, func(api.JobEvent) {})
	if err != nil {
		return nil, fmt.Errorf("wait for the end of job %s: %w", id, err)
	}
	if j.State != "done" {
		return nil, fmt.Errorf("job %s is %s: %s", id, j.State, j.Error)
	}
	for _, e := range j.History {
		list = append(list, e.Weights)
	}
	return list, nil
}

// kept is what must outlive an upgrade.
type kept struct {
	members, datasets, tokens, jobs []string
	model                           string // digest
}

func (m *mesh) kept(ctx context.Context, on *node, job string) (k kept, err error) {
	members, err := on.Members(ctx)
	for _, a := range members {
		k.members = append(k.members, a.Name+" "+a.ID)
	}
	datasets, err2 := on.Datasets(ctx)
	for _, d := range datasets {
		k.datasets = append(k.datasets, fmt.Sprint(d.Name, " ", d.Stage, " ", d.Vertices, " ", d.Edges, " ", d.Shards, " ", d.Bytes))
	}
	tokens, err3 := on.Tokens(ctx)
	for _, t := range tokens {
		k.tokens = append(k.tokens, t.ID)
	}
	jobs, err4 := on.Jobs(ctx)
	for _, j := range jobs {
		if j.State == "done" {
			k.jobs = append(k.jobs, j.ID+" "+j.Model)
		}
	}
	var model bytes.Buffer
	err5 := on.ExportJob(ctx, job, api.ExportRequest{}, &model)
	sum := sha256.Sum256(model.Bytes())
	k.model = hex.EncodeToString(sum[:8])
	for _, list := range [][]string{k.members, k.tokens} {
		slices.Sort(list)
	}
	return k, errors.Join(err, err2, err3, err4, err5)
}

// lost lists what one has and the other has not.
func (k kept) lost(now kept) (list []string) {
	for what, pair := range map[string][2][]string{
		"member": {k.members, now.members}, "dataset": {k.datasets, now.datasets}, "token": {k.tokens, now.tokens}, "job": {k.jobs, now.jobs},
		"model": {{k.model}, {now.model}},
	} {
		for _, one := range pair[0] {
			if !slices.Contains(pair[1], one) {
				list = append(list, what+" "+one)
			}
		}
	}
	slices.Sort(list)
	return list
}

// rolling upgrades a mesh of the version before, node by node, while a job trains, takes one node
// back, and lets nodes of either version join.
func rolling(ctx context.Context, m *mesh, p *page) error {
	b := p.binaries
	if err := m.grow(ctx, b.previous, voters); err != nil {
		return err
	}
	// A node of today joins a mesh of the version before.
	if err := m.joins(ctx, p, b.today, "a node of today joins a mesh of the version before"); err != nil {
		return err
	}
	if err := errors.Join(m.generate(ctx, "graph", 60_000, voters-1), m.generate(ctx, "other", 2_000, 1)); err != nil {
		return err
	}
	small, err := m.nodes[0].StartJob(ctx, recipe("other", 3, true))
	if err != nil {
		return err
	}
	if _, err := weights(ctx, m.nodes[0], small.ID, patience); err != nil {
		return err
	}
	calm, err := m.nodes[0].StartJob(ctx, recipe("graph", epochs, true))
	if err != nil {
		return err
	}
	want, err := weights(ctx, m.nodes[0], calm.ID, 4*patience)
	if err != nil {
		return err
	}
	before, err := m.kept(ctx, m.nodes[0], small.ID)
	if err != nil {
		return err
	}
	job, err := m.nodes[0].StartJob(ctx, recipe("graph", epochs, true))
	if err != nil {
		return err
	}
	for i, n := range m.nodes[:voters] {
		if err := m.restart(ctx, p, job.ID, i, b.today, "node "+n.name+" is upgraded"); err != nil {
			return err
		}
	}
	if err := m.back(ctx, p, job.ID, b); err != nil {
		return err
	}
	got, err := weights(ctx, m.nodes[0], job.ID, 4*patience)
	if err != nil {
		return err
	}
	p.claim("the job ends with the weights of an undisturbed one, after each epoch", slices.Equal(want, got), fmt.Sprintf("%d of %d epochs", same(want, got), epochs))
	for _, n := range m.nodes[:voters] {
		after, err := m.kept(ctx, n, small.ID)
		if err != nil {
			return err
		}
		lost := before.lost(after)
		p.claim("members, datasets, tokens, jobs and a model are as before, says "+n.name, len(lost) == 0, strings.Join(lost, ", "))
	}
	if err := m.nodes[0].VerifyDataset(ctx, "graph", func(api.DatasetEvent) {}); err != nil {
		return fmt.Errorf("verify the dataset: %w", err)
	}
	// The other way round.
	return m.joins(ctx, p, b.previous, "a node of the version before joins a mesh of today")
}

// same counts the entries in which two lists agree.
func same(a, b []string) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

// restart stops a node of a running job and starts it as a program, and waits until the job runs on
// all nodes again.
func (m *mesh) restart(ctx context.Context, p *page, job string, at int, program, what string) error {
	n, witness := m.nodes[at], m.nodes[(at+1)%voters]
	if err := m.owned(ctx, "graph", voters); err != nil {
		return err
	}
	f := follow(ctx, witness, job)
	defer f.end()
	if err := m.settled(ctx, f); err != nil {
		return err
	}
	_, begun, lost := f.now()
	from := time.Now()
	if err := n.end(ctx); err != nil {
		return err
	}
	stopped := time.Since(from)
	if err := n.start(program); err != nil {
		return err
	}
	if err := f.goesOn(ctx, begun); err != nil {
		return err
	}
	rested := time.Since(from)
	if err := n.ready(ctx); err != nil {
		return err
	}
	if err := m.shared(ctx, f, voters); err != nil {
		return err
	}
	_, times, all := f.now()
	p.restarted(restart{
		what: what, stopped: stopped, rested: rested, whole: time.Since(from), lost: all - lost, generations: times - begun,
	})
	return nil
}

// shared waits until a job runs on so many nodes, and has made a step there.
func (m *mesh) shared(ctx context.Context, f *progress, nodes int) error {
	made := -1
	return until(ctx, fmt.Sprintf("%d nodes share job %s", nodes, f.job), func() (bool, error) {
		j, err := f.on.Job(ctx, f.job)
		switch {
		case err != nil:
			return false, nil //nolint:nilerr // the leader may be gone
		case j.State != "running" && j.State != "queued":
			return false, fmt.Errorf("job %s is %s, after %d epochs: %s", f.job, j.State, j.Epoch, j.Error)
		case j.State != "running" || len(j.Nodes) != nodes || j.Steps == 0:
			made = -1
			return false, nil
		}
		now, _, _ := f.now()
		if made < 0 {
			made = now
		}
		return now > made, nil
	})
}

// settled waits until a job runs on all nodes, and has ended an epoch there: before that, nodes may not
// have verified their shards yet, and keep no steps that came of them.
func (m *mesh) settled(ctx context.Context, f *progress) error {
	if err := m.shared(ctx, f, voters); err != nil {
		return err
	}
	return until(ctx, "an epoch has ended", func() (bool, error) {
		j, err := f.on.Job(ctx, f.job)
		if err == nil && j.State == "done" {
			return false, fmt.Errorf("job %s is done before all nodes were restarted: it is too short for this machine", j.ID)
		}
		return err == nil && slices.ContainsFunc(j.History, func(e api.JobEpoch) bool { return e.Generation == j.Generation }), nil
	})
}

// back starts a node of today as the version before, on the directory that today's has kept.
func (m *mesh) back(ctx context.Context, p *page, job string, b binaries) error {
	const what = "node n3 goes back to the version before"
	n := m.nodes[voters-1]
	if err := n.end(ctx); err != nil {
		return err
	}
	if err := n.start(b.previous); err != nil {
		return err
	}
	err := n.ready(ctx)
	switch {
	case err == nil:
		p.claim(what, true, "accepted")
	case n.ended():
		line := last(n.log.String())
		p.claim(what, sentence(line), "refused: "+line)
	default:
		return err
	}
	return m.restart(ctx, p, job, voters-1, b.today, "node n3 is upgraded again")
}

// sentence reports whether a line is an error in words, and no trace.
func sentence(line string) bool {
	return strings.HasPrefix(line, "hopmesh: ") && !strings.Contains(line, "goroutine")
}

// joins lets a node of another version join, hold shards and leave again.
func (m *mesh) joins(ctx context.Context, p *page, program, what string) error {
	from := time.Now()
	n, err := m.add(ctx, program)
	if err == nil {
		err = n.ready(ctx)
	}
	if err == nil {
		err = errors.Join(m.sees(ctx, m.nodes[0], m.nodes), m.sees(ctx, n, m.nodes))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	p.claim(what, true, fmt.Sprintf("well after %.1f s", time.Since(from).Seconds()))
	if err := n.Leave(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	select {
	case <-n.done:
	case <-time.After(patience):
		return fmt.Errorf("%s, and does not leave", what)
	}
	m.nodes = m.nodes[:len(m.nodes)-1]
	n.Close()
	return nil
}
