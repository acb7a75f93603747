package leap_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Rows that are kept change what is sent, and nothing that is learnt.
func TestKeptRowsAreNotAskedForAgain(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for _, name := range []string{"centric", "leap"} {
		t.Run(name, func(t *testing.T) { keptRows(t, shards, name) })
	}
}

// By default what steps and evaluations bring is kept: no row comes twice.
func TestRowsComeOnce(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	for _, name := range []string{"centric", "leap"} {
		run := func(set ...string) []trained.Epoch {
			r := traintest.Small("sage")
			r.Epochs, r.EvalEvery = 3, 3
			r.Sharing = strategy.Given(name, set...)
			r.Sharing.Deterministic = true
			o := train.Options{Threads: 1}
			_, reports, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, o, func(int) string { return "" })
			if err != nil {
				t.Fatal(err)
			}
			return reports[0]
		}
		off := run(name + ".cache=off")
		kept := run()
		feature := func(e trained.Epoch) uint64 { return e.Sent.Bytes[peer.Feature] }
		for i := range kept {
			k, o := kept[i], off[i]
			if k.Hash != o.Hash || k.Rows.Total() != o.Rows.Total() || o.Rows.Kept > 0 || k.Rows.Remote+k.Rows.Kept != o.Rows.Remote {
				t.Errorf("%s, epoch %d: %+v, and %+v with none kept", name, i+1, k.Rows, o.Rows)
			}
			if i > 0 && (k.Rows.Kept == 0 || k.Rows.Remote > 0 && k.Rows.Remote >= kept[i-1].Rows.Remote || feature(k) >= feature(o)/2) {
				t.Errorf("%s, epoch %d: %+v, %d bytes, and %d with none kept", name, i+1, k.Rows, feature(k), feature(o))
			}
		}
		if kept[0].Rows.Kept == 0 {
			t.Errorf("%s: no row of the first epoch came before", name)
		}
	}
}

// Who has less memory keeps what there is room for, says so, and learns the same.
func TestKeptRowsFitMemory(t *testing.T) {
	shards := traintest.Communities(t, 3000)
	run := func(cache string, memory uint64) (last trained.Epoch, takes uint64, notes string, err error) {
		r := traintest.Small("sage")
		r.Epochs, r.EvalEvery = 3, 3
		r.Sharing = strategy.Given("leap", "topology=sharded", "leap.cache="+cache)
		r.Sharing.Deterministic = true
		var mu sync.Mutex
		o := train.Options{Threads: 1, Memory: memory, Announce: func(f train.Forecast) {
			mu.Lock()
			defer mu.Unlock()
			takes, notes = max(takes, f.Arenas), notes+fmt.Sprint(f.Notes)
		}}
		_, all, err := traintest.NewMesh(3, traintest.Uneven(len(shards), 3)).Run(t.Context(), r, shards, o, func(int) string { return "" })
		if err == nil {
			last = all[0][2]
		}
		return last, takes, notes, err
	}
	off, needs, _, err := run("off", 0)
	if err != nil {
		t.Fatal(err)
	}
	every, _, _, err := run("auto", 0)
	if err != nil {
		t.Fatal(err)
	}
	for memory := needs; ; memory -= 64 << 10 { // evaluation takes as much as there is, and needs less
		some, takes, notes, err := run("auto", memory)
		if err != nil {
			t.Fatalf("no job has kept some of the rows, before %v", err)
		}
		if some.Hash != off.Hash || every.Hash != off.Hash || takes > memory {
			t.Fatalf("%d bytes of %d, and weights %s, %s and %s", takes, memory, some.Hash, every.Hash, off.Hash)
		}
		if some.Rows.Kept > 0 && some.Rows.Kept < every.Rows.Kept && strings.Contains(notes, "a node has memory to keep") {
			return
		}
	}
}

func keptRows(t *testing.T, shards []*graph.Shard, name string) {
	run := func(rows int) trained.Epoch {
		r := traintest.Small("sage")
		r.Epochs = 2
		r.Sharing = strategy.Given(name, fmt.Sprintf("%s.cache=%d", name, rows))
		r.Sharing.Deterministic = true
		m := traintest.NewMesh(3, traintest.Uneven(len(shards), 3))
		_, all, err := m.Run(t.Context(), r, shards, train.Options{Threads: 1}, func(int) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		return all[0][1]
	}
	without, some, every := run(0), run(300), run(len(shards)*3000)
	for _, e := range []trained.Epoch{some, every} {
		if e.Hash != without.Hash || e.Rows.Total() != without.Rows.Total() {
			t.Errorf("with rows that are kept: %d rows, weights %s; without: %d rows, weights %s", e.Rows.Total(), e.Hash, without.Rows.Total(), without.Hash)
		}
	}
	if some.Rows.Remote >= without.Rows.Remote || some.Rows.Remote == 0 || every.Rows.Remote != 0 {
		t.Errorf("%d rows came from other nodes with 300 kept, %d with all, %d with none", some.Rows.Remote, every.Rows.Remote, without.Rows.Remote)
	}
	if some.Sent.Bytes[peer.Feature] >= without.Sent.Bytes[peer.Feature] || every.Sent.Bytes[peer.Feature] != 0 {
		t.Errorf("%d bytes of features were sent with 300 rows kept, %d with all, %d with none",
			some.Sent.Bytes[peer.Feature], every.Sent.Bytes[peer.Feature], without.Sent.Bytes[peer.Feature])
	}
}
