package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestWhereShardsAre(t *testing.T) {
	s := populated(t)
	d, ok := s.DatasetByName("graph")
	if _, other := s.DatasetByName("none"); !ok || other || d.ID != datasetID {
		t.Fatalf("%+v %v %v", d, ok, other)
	}
	for i, want := range []struct{ holders, wanted string }{
		{"[a b]", "[a b]"}, {"[a]", "[a b]"}, {"[a]", "[b a]"}, {"[b]", "[b]"},
	} {
		if h, w := fmt.Sprint(d.HoldersOf(i)), fmt.Sprint(d.WantedOf(i)); h != want.holders || w != want.wanted {
			t.Errorf("shard %d is on %s, wanted on %s", i, h, w)
		}
	}
	if d.Owner(2) != "a" || d.Holds("b", 2) || !d.Wants("b", 2) || d.Wants("a", 3) || d.Wants("x", 0) || d.Lost(2) || d.Settled(2) || !d.Settled(3) {
		t.Errorf("%+v", d)
	}
	if s.ShardsOwned("a") != 3 || s.ShardsOwned("b") != 1 || s.ShardsOwned("x") != 0 {
		t.Errorf("a owns %d, b %d", s.ShardsOwned("a"), s.ShardsOwned("b"))
	}
	for up, want := range map[string]Lacks{"": {Unserved: 4}, "a": {Unserved: 1, Thin: 3}, "b": {Unserved: 2, Waiting: 1, Thin: 1}, "ab": {Thin: 3}} {
		if got := d.Lacks(func(id string) bool { return strings.Contains(up, id) }); got != want {
			t.Errorf("when %q serve: %+v", up, got)
		}
	}
}

func TestDatasetNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"cora": true, "Ogbn-arxiv_2.1": true, "7": true, strings.Repeat("x", 64): true,
		"": false, ".": false, "-x": false, "_x": false, "a b": false, "a/b": false, "é": false, "a\n": false, strings.Repeat("x", 65): false,
	} {
		if err := CheckDatasetName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestEveryStateStaysAsItWas: a long run of commands at random, sensible and not.
// No state changes once it is made, whatever is made from it, and a snapshot of
// each reads as the same.
func TestEveryStateStaysAsItWas(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	type version struct {
		state *State
		text  string
	}
	s, changes := working(t), map[string]int{}
	var all []version
	for index := uint64(100); index < 900; index++ {
		b, err := MarshalSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, version{s, string(b)})
		if back, err := UnmarshalSnapshot(b); err != nil || back.Digest() != s.Digest() {
			t.Fatalf("%+v: %v", s, err)
		}
		c := anyCommand(r, s)
		data, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		next, err := Apply(s, index, data)
		if err == nil && next.Digest() != s.Digest() {
			changes[fmt.Sprintf("%T", c)]++
		}
		if err != nil && next.Digest() != s.Digest() || next.Generation < s.Generation {
			t.Fatalf("%+v: %v, but another state", c, err)
		}
		s = next
	}
	for _, v := range all {
		if b, err := MarshalSnapshot(v.state); err != nil || string(b) != v.text {
			t.Fatalf("the state of index %d was changed later (%v)", v.state.Index, err)
		}
	}
	if len(changes) < 14 {
		t.Errorf("only these ever changed something: %v", changes)
	}
}

// anyCommand is one that may well have an effect.
func anyCommand(r *rand.Rand, s *State) Command {
	if r.IntN(2) == 0 {
		return anyJobCommand(r, s)
	}
	node := func() string { return string(rune('a' + r.IntN(4))) }
	id := fmt.Sprintf("00000000000000d%d", 5+r.IntN(3))
	d := s.Datasets[id]
	var some []int
	var rows [][]int
	for i := range d.Shards {
		if r.IntN(3) == 0 {
			some = append(some, i)
		}
		rows = append(rows, r.Perm(2 + r.IntN(2))[:1+r.IntN(2)])
	}
	switch r.IntN(12) {
	case 0, 1:
		n := node()
		return AddMember{Member: Member{ID: n, Name: n, PublicKey: "k" + n}}
	case 2:
		if r.IntN(3) > 0 {
			return UpdateMember{ID: node(), Speed: r.Uint64N(5)}
		}
		return RemoveMember{ID: node(), Why: Removed}
	case 3:
		if r.IntN(8) > 0 {
			return SetLeaving{ID: node()}
		}
		return RemoveDataset{ID: id}
	case 4:
		return ReserveDataset{ID: id, Name: "n" + id, Importer: node(), Replicas: r.IntN(3)}
	case 5:
		return defined(id, d.Importer, 1+r.IntN(5))
	case 6, 7:
		c := PlaceShards{ID: id, Nodes: []string{"a", "b", "c"}, Wanted: rows}
		if r.IntN(2) == 0 {
			c.Away = []string{node()}
		}
		return c
	case 8:
		return LoseShards{ID: id, Node: node(), Shards: some}
	default:
		return HoldShards{ID: id, Node: node(), Shards: some}
	}
}

func TestDatasetsThatNoHistoryLeadsTo(t *testing.T) {
	for name, spoil := range map[string]func(s *State, d *Dataset){
		"id":                func(_ *State, d *Dataset) { d.ID = "00000000000000ff" },
		"two of a name":     func(_ *State, d *Dataset) { d.Name = "other" },
		"a bad name":        func(_ *State, d *Dataset) { d.Name = "a b" },
		"replicas":          func(_ *State, d *Dataset) { d.Replicas = -1 },
		"stage":             func(_ *State, d *Dataset) { d.Stage = "lost" },
		"back to importing": func(_ *State, d *Dataset) { d.Stage = Importing },
		"no shards":         func(_ *State, d *Dataset) { d.Shards = nil },
		"too many shards":   func(_ *State, d *Dataset) { d.Shards = make([]Shard, MaxShards+1) },
		"vertices":          func(_ *State, d *Dataset) { d.About.Vertices++ },
		"a SHA-256":         func(_ *State, d *Dataset) { d.Shards[1].SHA256 = strings.ToUpper(hash) },
		"a stranger":        func(s *State, _ *Dataset) { delete(s.Members, "b"); delete(s.Datasets, "00000000000000d6") },
		"an importer gone": func(s *State, _ *Dataset) {
			s.Datasets["00000000000000d6"] = Dataset{ID: "00000000000000d6", Name: "x", Stage: Importing, Importer: "x"}
		},
		"nodes in disorder": func(_ *State, d *Dataset) { d.Nodes = []string{"b", "a"} },
		"a node twice":      func(_ *State, d *Dataset) { d.Nodes = []string{"a", "a"} },
		"a node without part": func(_ *State, d *Dataset) {
			d.Shards = d.Shards[1:2]
			d.Shards[0].Wanted = nil
			d.About.Vertices, d.About.Edges = 10, 20
		},
		"a holder unknown": func(_ *State, d *Dataset) { d.Shards[0].Holders = []int{0, 2} },
		"a holder below 0": func(_ *State, d *Dataset) { d.Shards[0].Holders = []int{-1} },
		"a holder twice":   func(_ *State, d *Dataset) { d.Shards[0].Holders = []int{0, 0} },
		"wanted twice":     func(_ *State, d *Dataset) { d.Shards[1].Wanted = []int{1, 1} },
		"all wanted hold":  func(_ *State, d *Dataset) { d.Shards[0].Wanted = []int{1, 0} },
		"not the owner":    func(_ *State, d *Dataset) { d.Shards[0].Holders, d.Shards[0].Wanted = []int{1, 0}, []int{0, 1} },
		"in place, not ready": func(_ *State, d *Dataset) {
			for i := range d.Shards {
				d.Shards[i].Holders, d.Shards[i].Wanted = []int{0, 1}, nil
			}
		},
	} {
		s := populated(t)
		d := s.Datasets[datasetID]
		before := d.ID
		spoil(s, &d)
		s.Datasets[before] = d
		b, err := MarshalSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := UnmarshalSnapshot(b); !errors.Is(err, ErrBadSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// largest is a mesh of 64 nodes with a dataset of the most shards and of numbers
// as long as they get, and the command that places it as widely as can be.
func largest(t testing.TB) (*State, DefineDataset, PlaceShards) {
	s := founded(t)
	place := PlaceShards{ID: datasetID}
	for i := range 64 {
		id := fmt.Sprintf("%032d", i)
		place.Nodes = append(place.Nodes, id)
		s = must(t, s, uint64(i)+2, AddMember{Member: Member{ID: id, Name: id, PublicKey: hash}})
	}
	define := defined(datasetID, "a", MaxShards)
	define.About.Edges, define.About.Vertices = 0, 0
	for i := range define.Shards {
		const most = maxNumber / MaxShards
		define.Shards[i] = ShardAbout{Vertices: most, Edges: most, Halo: maxNumber, Bytes: maxNumber, SHA256: hash}
		define.About.Vertices += most
		define.About.Edges += most
		define.About.Splits = append(define.About.Splits, SplitSizes{most, most, most})
		row := make([]int, MaxReplicas+1)
		for k := range row {
			row[k] = (i + k) % 64
		}
		place.Wanted = append(place.Wanted, row)
	}
	define.About.Splits = define.About.Splits[:MaxShards]
	define.About.Types = strings.Repeat(`{"name":"of about so many letters"},`, MaxTypes)[:MaxTypes]
	s = must(t, s, 100, ReserveDataset{ID: datasetID, Name: "graph", Importer: "a", Replicas: MaxReplicas})
	return s, define, place
}

func TestTheLargestDatasetFits(t *testing.T) {
	s, define, place := largest(t)
	for i, c := range []Command{define, place} {
		data, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > maxCommand*3/4 {
			t.Errorf("%T is %d bytes: it hardly fits", c, len(data))
		}
		s = must(t, s, uint64(i)+101, c)
	}
	d := s.Datasets[datasetID]
	one, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if all := (len(one)-MaxTypes)/d.rows()*MaxRows + MaxTypes*MaxDatasets; all > MaxSnapshot*3/4 {
		t.Errorf("the most datasets make a snapshot of %d bytes", all)
	}
}

func TestDatasetsAreBounded(t *testing.T) {
	s := founded(t)
	reserve := func(n int) ([]byte, error) {
		return Encode(ReserveDataset{ID: fmt.Sprintf("%016x", n), Name: fmt.Sprint("d", n), Importer: "a"})
	}
	for n := range MaxDatasets + 1 {
		data, err := reserve(n)
		if err != nil {
			t.Fatal(err)
		}
		s, err = Apply(s, uint64(n)+2, data)
		if (err != nil) != (n == MaxDatasets) || err != nil && !errors.Is(err, ErrDatasetsFull) {
			t.Fatalf("dataset %d: %v", n, err)
		}
	}
	var err error
	for n := 0; err == nil; n++ {
		var data []byte
		if data, err = Encode(defined(fmt.Sprintf("%016x", n), "a", MaxShards-1)); err != nil {
			t.Fatal(err)
		}
		s, err = Apply(s, uint64(n)+1000, data)
		if rows := s.rows(); rows > MaxRows || n > MaxDatasets {
			t.Fatalf("%d rows", rows)
		}
	}
	if !errors.Is(err, ErrDatasetsFull) {
		t.Error(err)
	}
}

func BenchmarkHoldOneOf1024Shards(b *testing.B) {
	s, define, place := largest(b)
	for i := range place.Wanted {
		place.Wanted[i] = place.Wanted[i][:2]
	}
	s = must(b, must(b, s, 101, define), 102, place)
	data, err := Encode(HoldShards{ID: datasetID, Node: place.Nodes[1], Shards: []int{1}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Apply(s, 103, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlace1024Shards(b *testing.B) {
	s, define, place := largest(b)
	s = must(b, s, 101, define)
	d := s.Datasets[datasetID]
	d.Replicas = 2
	nodes := []PlaceNode{{ID: "a", Serving: true, Stays: true}}
	for _, id := range place.Nodes {
		nodes = append(nodes, PlaceNode{ID: id, Weight: 1000, Serving: true, Stays: true})
	}
	b.ReportAllocs()
	for b.Loop() {
		Place(d, nodes)
	}
}
