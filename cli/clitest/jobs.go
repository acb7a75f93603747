package clitest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
)

func Epoch(n int) api.JobEpoch {
	val, test := 0.79, 0.8125
	return api.JobEpoch{
		Epoch: n, Loss: 1.5 / float64(n), TrainAccuracy: &test, ValAccuracy: &val, TestAccuracy: &test, Seconds: 0.0021,
		Phases: api.JobPhases{Gather: 0.0004, Compute: 0.0015, Wait: 1.2}, Rows: api.JobRows{Local: 2708}, Eval: &api.JobEval{Seconds: 0.001},
		Generation: 12, Weights: strings.Repeat("0a", 32),
	}
}

func Done() api.Job {
	second := Epoch(2)
	second.TrainAccuracy, second.ValAccuracy, second.TestAccuracy, second.Eval = nil, nil, nil, nil
	return api.Job{
		ID: "j7", State: "done", Dataset: "cora\x1b[2J", Model: "gcn", Strategy: "single", Why: "one node trains a job", Seed: 7, Generation: 12,
		Nodes: []string{"alpha"}, EpochsTotal: 2, Epoch: 2, Best: &api.JobBest{Epoch: 1, ValAccuracy: new(0.79), TestAccuracy: new(0.8125)},
		History: []api.JobEpoch{Epoch(1), second}, Recipe: json.RawMessage(`{"epochs": 2}`),
		Memory: &api.JobMemory{Forecast: 96 << 20, Taken: 81 << 20, FellBack: []string{}},
	}
}

// SharedEpoch is one of three nodes. Of the kinds of bytes, some were not sent.
func SharedEpoch(n int) api.JobEpoch {
	e := Epoch(n)
	e.Seconds, e.Phases = 12.3456, api.JobPhases{Sample: 0.5, Gather: 3.25, Compute: 6.125, Reduce: 1.5, Wait: 0.9706}
	e.Rows, e.Requests = api.JobRows{Local: 12_345_678, Remote: 1_234_567}, api.JobRequests{Feature: 384, Topology: 96}
	e.Bytes = api.JobBytes{Feature: 1_264_196_608, Topology: 3 << 20, Gradient: 90 << 20, Control: 70_000}
	e.Eval = &api.JobEval{Seconds: 2.5, Bytes: api.JobBytes{Activation: 400 << 20, Control: 1000}}
	e.Strategy = "leap"
	return e
}

func SharedJob() api.Job {
	first, second, third := SharedEpoch(1), SharedEpoch(2), SharedEpoch(3)
	second.Why = "models of 1 MiB are smaller than\x1b[2J the rows that they need"
	second.Slots, second.Bytes.Model = 3, 6<<20
	third.Why, third.Slots, third.Bytes.Model = second.Why, 2, 4<<20
	third.TrainAccuracy, third.ValAccuracy, third.TestAccuracy, third.Eval = nil, nil, nil, nil
	third.Rows.Kept = 900_000
	j := Running()
	j.Strategy, j.Why, j.Nodes = "auto", "nodes choose by what they measure", []string{"alpha", "beta", "gamma"}
	j.History, j.Problems = []api.JobEpoch{first, second, third}, nil
	j.Schedule = []api.JobEntry{
		{From: 1, Generation: 9, Strategy: "leap", How: "models travel in 3 slots, in fewer if that is faster", Rate: 0.01, Why: second.Why},
		{From: 3, Generation: 9, Strategy: "leap", How: "models travel in 2 slots", Rate: 0.01, Why: "as epochs until\x1b[2J 1 took"},
		{From: 5, Generation: 9, Strategy: "centric"},
	}
	return j
}

func SharedJobs() []api.JobSummary {
	list := Jobs()
	list[1].Strategy, list[1].Nodes = "leap", []string{"alpha", "beta\x1b[2J", "gamma"}
	list[1].Owners = []int{0, 0, 0, 1, 1, 2, 1, 2, 2, 0}
	list[2].Owners = []int{0, 7, -1} // of a daemon that is broken
	return list
}

func Running() api.Job {
	j := Done()
	j.State, j.EpochsTotal, j.Epoch, j.Step, j.Steps = "running", 200, 3, 5, 9
	j.Problems = []string{"node alpha, which runs job j7, does not answer: start it again"}
	return j
}

func Queued() api.Job {
	j := Done()
	j.State, j.Nodes, j.History, j.Best, j.Epoch, j.Generation = "queued", nil, nil, nil, 0, 0
	j.Problems = []string{"job j7 waits until job j6 has ended"}
	return j
}

func Failed() api.Job {
	j := Done()
	j.State, j.Error = "failed", "the training diverged\x1b[2J: start again with a smaller --lr"
	return j
}

// Unevaluated is done, on a dataset without validation vertices.
func Unevaluated() api.Job {
	j := Done()
	j.Best = &api.JobBest{Epoch: 2, TestAccuracy: new(0.8125)}
	j.Notes = []string{"split 0 has no validation vertices\x1b[2J: the weights of the last epoch are kept"}
	return j
}

func Jobs() []api.JobSummary {
	return []api.JobSummary{
		{ID: "j7", State: "done", Dataset: "cora", Model: "gcn", Strategy: "single", Epoch: 2, EpochsTotal: 2, Best: &api.JobBest{Epoch: 1, ValAccuracy: new(0.79), TestAccuracy: new(0.8125)}, Nodes: []string{"alpha"}},
		{ID: "j8", State: "running", Dataset: "products\x1b[2J", Model: "sage", Strategy: "single", Epoch: 3, EpochsTotal: 20, Nodes: []string{"beta"}},
		{ID: "j9", State: "queued", Dataset: "cora", Model: "gat", Strategy: "single", EpochsTotal: 200},
	}
}

// Sweep is a sweep of three models: the last is the best, and stopped early; the second
// diverged before it was evaluated.
func Sweep() api.Job {
	j := Done()
	epoch := func(n, model int, val float64) api.JobEpoch {
		e := Epoch(n)
		e.Model, e.ValAccuracy, e.Loss = model, new(val), 1/float64(n+model)
		return e
	}
	second := epoch(1, 1, 0.5)
	second.TrainAccuracy, second.ValAccuracy, second.TestAccuracy, second.Eval = nil, nil, nil, nil
	j.Models = []api.JobModel{
		{Params: map[string]string{"lr": "0.01", "hidden": "16"}, Best: &api.JobBest{Epoch: 2, ValAccuracy: new(0.75), TestAccuracy: new(0.8)}, History: []api.JobEpoch{epoch(1, 0, 0.5), epoch(2, 0, 0.75)}},
		{Params: map[string]string{"lr": "1e-3", "hidden": "16\x1b[2J"}, History: []api.JobEpoch{second}},
		{Params: map[string]string{"lr": "0.01", "hidden": "64"}, Best: &api.JobBest{Epoch: 1, ValAccuracy: new(0.79)}, History: []api.JobEpoch{epoch(1, 2, 0.79)}},
	}
	j.Models[1].Diverged = "model 1 (hidden=16\x1b[2J, lr=1e-3) diverged: in epoch 2, step 1, the loss is not finite"
	j.Best, j.History = &api.JobBest{Epoch: 1, Model: new(2), ValAccuracy: new(0.79), TestAccuracy: new(0.8125)}, j.Models[2].History
	return j
}

func Cora() api.Dataset {
	d := api.Dataset{
		Name: "cora", Stage: "ready", Vertices: 2708, Edges: 10556, Features: 1433, Classes: 7, Splits: 1,
		ClassNames: []string{"Case_Based", "Genetic_Algorithms", "Neural_Networks", "Probabilistic_Methods", "Reinforcement_Learning", "Rule_Learning", "Theory\x1b[2J"},
		SplitSizes: []api.SplitSizes{{Train: 140, Val: 500, Test: 1000}}, DType: "f32",
		EdgeCut: 1234, EdgeCutShare: 0.1169, Balance: 1.0155, BalanceEdges: 1.09, BalanceTraining: 1.1, Partitioner: "multilevel", Seed: 7,
		Folder: "/var/lib/hopmesh/datasets/5a01",
	}
	for i, owner := range []string{"alpha", "alpha", "beta\x1b[2J", "alpha"} {
		d.Shards = append(d.Shards, api.DatasetShard{
			ID: i, Vertices: 677, Edges: 2639, Halo: uint64(100 * (4 - i)), Bytes: 3 << 18, SHA256: strings.Repeat(fmt.Sprint(i), 64),
			Owner: owner, Replicas: []string{"gamma"},
		})
	}
	return d
}
