//go:build processes

package chaos

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

func (s *settlement) jobOn(i int, id string) api.Job {
	if !s.runs(i) {
		return api.Job{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	j, err := s.crew.Nodes[i].API.Job(ctx, id)
	if err != nil {
		return api.Job{}
	}
	return j
}

func (s *settlement) dataset(i int, name string) api.Dataset {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d, err := s.crew.Nodes[i].API.Dataset(ctx, name)
	if err != nil {
		return api.Dataset{}
	}
	return d
}

// staying lists the nodes that run and were not asked to go.
func (s *settlement) staying() (all []int) {
	for i := range s.crew.Nodes {
		if s.runs(i) && !s.going[i] {
			all = append(all, i)
		}
	}
	return all
}

func (s *settlement) member() int {
	all := s.staying()
	if len(all) == 0 {
		s.Fatal("no node is left")
	}
	return all[0]
}

// recover ends all faults, and waits until the job is done.
func (s *settlement) recover() {
	s.bury()
	if err := s.heal(); err != nil {
		s.Fatal(err)
	}
	for i := range s.crew.Nodes {
		if j := s.jobOn(i, s.job); j.ID != "" {
			s.Logf("when the faults end, %d of %d epochs are done on n%d", len(j.History), epochs, i+1)
			break
		}
	}
	for i := range s.crew.Nodes {
		err := errors.Join(s.field.Narrow(s.Context(), i, 1500), s.restart(i))
		if err != nil {
			s.Fatal(err)
		}
	}
	s.asked.Wait()
	s.wait("all nodes are ready and hold equal plans", toAgree, func() bool {
		s.bury()
		digests := map[string]bool{}
		for _, i := range s.staying() {
			b := s.crew.Nodes[i].API
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			status, err := b.Status(ctx)
			plan, wrong := b.Plan(ctx)
			cancel()
			if err != nil || wrong != nil || !status.Ready {
				return false
			}
			digests[plan.Digest] = true
		}
		return len(digests) == 1
	})
	s.wait("the job is done", toFinish, func() bool {
		for _, i := range s.staying() {
			switch j := s.jobOn(i, s.job); j.State {
			case "failed", "stopped":
				s.Fatalf("job %s is %s: %s\n%s", s.job, j.State, j.Error, s.describe())
			case "done":
				return true
			}
		}
		return false
	})
}

// check checks what must hold after a history.
func (s *settlement) check(want []string) {
	var j api.Job
	s.wait("all know that the job is done", time.Minute, func() bool {
		for _, i := range s.staying() {
			if j = s.jobOn(i, s.job); j.State != "done" {
				return false
			}
		}
		return true
	})
	s.Logf("the job of %s took %d generations", s.h.Strategy, generations(j))
	if got := weights(j); !slices.Equal(got, want) {
		s.Errorf("the job's weights differ from epoch %d on of %d, with %d epochs in its history", firstOther(got, want), len(want), len(got))
	}
	b := client{s.crew.Nodes[s.member()].API}
	if err := s.kept(s.Context(), b); err != nil {
		s.Error(err)
	}
	s.wait("each shard has an owner and copies again", toAgree, func() bool {
		for name, sure := range s.datasets {
			if sure && copies(s.dataset(s.member(), name)) < 2 {
				return false
			}
		}
		return true
	})
	s.wait("who is said to hold a shard holds it", toAgree, func() bool {
		ctx, cancel := context.WithTimeout(s.Context(), toAgree)
		defer cancel()
		for name, sure := range s.datasets {
			if sure && b.VerifyDataset(ctx, name, func(api.DatasetEvent) {}) != nil {
				return false
			}
		}
		return true
	})
	for _, i := range s.staying() {
		if left, err := filepath.Glob(filepath.Join(s.crew.Nodes[i].Folder, "datasets", "*.part")); err != nil || len(left) > 0 {
			s.Errorf("n%d has left %v, %v", i+1, left, err)
		}
	}
}
