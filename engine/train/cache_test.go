package train

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Rows that are kept change what is sent, and nothing that is learnt.
func TestKeptRowsAreNotAskedForAgain(t *testing.T) {
	shards := communities(t, 3000)
	for name, keeping := range map[string]func(rows int) strategy.Settings{
		strategy.Centric: func(rows int) strategy.Settings {
			return strategy.Settings{Centric: strategy.CentricSettings{Cache: rows}}
		},
		strategy.Leap: func(rows int) strategy.Settings {
			return strategy.Settings{Leap: strategy.LeapSettings{Cache: rows}}
		},
	} {
		t.Run(name, func(t *testing.T) { keptRows(t, shards, name, keeping) })
	}
}

func keptRows(t *testing.T, shards []*graph.Shard, name string, keeping func(rows int) strategy.Settings) {
	train := func(rows int) Epoch {
		r := small("sage")
		r.Epochs = 2
		r.Sharing = keeping(rows)
		r.Sharing.Strategy, r.Sharing.Deterministic = name, true
		m := newMesh(3, uneven(len(shards), 3))
		_, all, err := m.run(t.Context(), r, shards, Options{Threads: 1}, func(int) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		return all[0][1]
	}
	without, some, every := train(0), train(300), train(len(shards)*3000)
	for _, e := range []Epoch{some, every} {
		if e.Hash != without.Hash || e.Rows != without.Rows {
			t.Errorf("with rows that are kept: %d rows, weights %s; without: %d rows, weights %s", e.Rows, e.Hash, without.Rows, without.Hash)
		}
	}
	if some.Remote >= without.Remote || some.Remote == 0 || every.Remote != 0 {
		t.Errorf("%d rows came from other nodes with 300 kept, %d with all, %d with none", some.Remote, every.Remote, without.Remote)
	}
	if some.Sent.Bytes[strategy.Feature] >= without.Sent.Bytes[strategy.Feature] || every.Sent.Bytes[strategy.Feature] != 0 {
		t.Errorf("%d bytes of features were sent with 300 rows kept, %d with all, %d with none",
			some.Sent.Bytes[strategy.Feature], every.Sent.Bytes[strategy.Feature], without.Sent.Bytes[strategy.Feature])
	}
}
