package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	requests "github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/lead"
)

// solo is a mesh of node a alone, whose plan takes commands at once.
type solo struct{ state *plan.State }

func (s *solo) State() *plan.State       { return s.state }
func (s *solo) Changed() <-chan struct{} { return nil }
func (s *solo) IsLeader() bool           { return true }
func (s *solo) Leader() string           { return "a" }
func (s *solo) Silence() time.Duration   { return 0 }
func (s *solo) Hint()                    {}

func (s *solo) Apply(_ context.Context, c plan.Command) (*plan.State, error) {
	data, err := plan.Encode(c)
	if err != nil {
		return nil, err
	}
	s.state, err = plan.Apply(s.state, s.state.Index+1, data)
	return s.state, err
}

func (s *solo) ID() string                        { return "a" }
func (s *solo) Handle(string, mesh.CallHandler)   {}
func (s *solo) Member(string) (mesh.Member, bool) { return mesh.Member{}, false }
func (s *solo) Call(context.Context, string, string, []byte) ([]byte, error) {
	return nil, errors.New("there is no other node")
}

// While the model of a job is read, the job may be removed or resumed: what starts from it could never
// begin.
func TestSourcesThatChangeMeanwhile(t *testing.T) {
	shards := enginetest.Communities(t, 300)
	about := dataset.Describe(shards)
	d := plan.Dataset{
		ID: "00000000000000d1", Name: "g", Stage: plan.Ready, Nodes: []string{"a"}, Shards: []plan.Shard{{Holders: []int{0}}},
		About: plan.About{Vertices: about.Vertices, Edges: about.Edges, Features: about.Features, Classes: about.Classes},
	}
	for _, s := range about.Splits {
		d.About.Splits = append(d.About.Splits, plan.SplitSizes{Train: s.Train, Val: s.Val, Test: s.Test})
	}
	empty := &plan.State{MeshID: "m", Members: map[string]plan.Member{"a": {ID: "a", Name: "na"}}, Datasets: map[string]plan.Dataset{d.ID: d}}
	r, text, err := requests.Of(api.TrainRequest{Dataset: "g", Epochs: new(1), Hidden: new(6)}, strategy.Single, nil, empty, d)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := train.Run(t.Context(), r, shards, train.Options{Threads: 1, Strategies: strategies.All, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	model, err := trained.ReadWeighed(filepath.Join(dir, train.CheckpointFile), trained.BestModel)
	if err != nil {
		t.Fatal(err)
	}
	resume := plan.ResumeJob{ID: "j1"}
	assign := plan.AssignJob{ID: "j1", Nodes: []string{"a"}}
	for _, c := range []struct {
		meanwhile []plan.Command
		runs      bool // and ends
		want      string
	}{
		{nil, false, ""},
		{[]plan.Command{resume, plan.StopJob{ID: "j1"}}, false, ""}, // it was in the queue
		{[]plan.Command{plan.RemoveJob{ID: "j1"}}, false, "job j1 was removed meanwhile"},
		{[]plan.Command{resume}, false, "job j1 was resumed meanwhile, so its model may still change"},
		{[]plan.Command{resume, assign}, false, "job j1 was resumed meanwhile, so its model may still change"},
		{[]plan.Command{resume, assign}, true, "job j1 was resumed meanwhile and has ended again"},
	} {
		p := &solo{state: empty}
		do := func(all ...plan.Command) {
			t.Helper()
			for _, c := range all {
				if _, err := p.Apply(t.Context(), c); err != nil {
					t.Fatalf("%+v: %v", c, err)
				}
			}
		}
		end := func() {
			t.Helper()
			do(plan.FinishJob{ID: "j1", Node: "a", Generation: p.state.Jobs["j1"].Generation, State: plan.Stopped})
		}
		do(plan.CreateJob{Key: "00000001", Dataset: d.ID, Recipe: text, Strategy: "single", Epochs: 1}, assign)
		end()
		leader, log := lead.New(p, p, "na"), slog.New(slog.DiscardHandler)
		orders := Register(leader, p, nil, nil, Program{}, log)
		jobs := New(Config{Name: "na", Mesh: p, Plan: p, Leader: leader, Orders: orders, Log: log, Source: func(context.Context, string) (*requests.Source, error) {
			j := p.state.Jobs["j1"]
			do(c.meanwhile...)
			if c.runs {
				end()
			}
			return requests.NewSource(j, model)
		}})
		what := fmt.Sprintf("%+v, and it ends: %v", c.meanwhile, c.runs)
		id, err := jobs.Start(t.Context(), api.TrainRequest{Dataset: "g", From: "j1"})
		if c.want != "" {
			if e, is := errors.AsType[*api.Error](err); !is || e.Status != http.StatusConflict || !strings.HasPrefix(e.Message, c.want) || p.state.JobsMade != 1 {
				t.Errorf("%s: job %q, %v", what, id, err)
			}
			continue
		}
		if err != nil || id != "j2" {
			t.Fatalf("%s: job %q, %v", what, id, err)
		}
		// The order may come once more, and has had its effect, whatever became of the other job.
		j := p.state.Jobs[id]
		do(resume)
		again, err := orders.create.Do(t.Context(), plan.CreateJob{
			Key: j.Key, Dataset: j.Dataset, Recipe: j.Recipe, Strategy: j.Strategy, Why: j.Why, Seed: j.Seed, Epochs: j.Epochs, Computing: j.Computing,
		})
		if err != nil || again.ID != "j2" {
			t.Errorf("%s: once more, job %q, %v", what, again.ID, err)
		}
	}
}
