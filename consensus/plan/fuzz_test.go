package plan

import (
	"errors"
	"testing"
	"time"
)

// populated is a mesh of a and b, with a dataset of four shards on its way from a to
// b, and another that b imports.
func populated(t testing.TB) *State {
	s := founded(t)
	for i, c := range []Command{
		AddMember{Member: Member{ID: "b", Name: "b", PublicKey: "kb"}},
		ReserveDataset{ID: datasetID, Name: "graph", Importer: "a", Replicas: 1},
		defined(datasetID, "a", 4),
		PlaceShards{ID: datasetID, Nodes: []string{"a", "b"}, Wanted: [][]int{{0, 1}, {0, 1}, {1, 0}, {1}}},
		HoldShards{ID: datasetID, Node: "b", Shards: []int{0, 3}},
		ReserveDataset{ID: "00000000000000d6", Name: "other", Importer: "b"},
	} {
		s = must(t, s, uint64(i)+2, c)
	}
	return s
}

// seeds are commands of each kind of each kind, as the log has them.
func seeds(f *testing.F) [][]byte {
	now := time.Unix(1000, 0).UTC()
	var list [][]byte
	for _, c := range []Command{
		Genesis{MeshID: "m", First: Member{ID: "a", Name: "a", PublicKey: "k"}, KeyDigest: "d"},
		AddMember{Member: Member{ID: "b", Name: "b", PublicKey: "k", Memory: 5}},
		UpdateMember{ID: "a", Device: "cuda:0", Version: "2"},
		SetLeaving{ID: "a"},
		RemoveMember{ID: "b", Why: Revoked},
		CreateToken{Token: NewToken("0123456789abcdef", now, time.Hour), Now: now},
		RevokeToken{ID: "0123456789ab"},
		RotateKey{Serial: 2, Digest: "d2", AsOf: 1},
		RetireKey{Serial: 1},
		Advance{Generation: 9},
		ReserveDataset{ID: "00000000000000d7", Name: "third", Importer: "b", Replicas: 1},
		RemoveDataset{ID: datasetID},
		RemoveDataset{ID: "00000000000000d6"},
		defined("00000000000000d6", "b", 2),
		PlaceShards{ID: datasetID, Nodes: []string{"b", "a"}, Wanted: [][]int{{0}, {0, 1}, {1}, {1, 0}}, Away: []string{"b"}},
		HoldShards{ID: datasetID, Node: "b", Shards: []int{0, 2}},
		LoseShards{ID: datasetID, Node: "a", Shards: []int{3, 0}},
	} {
		data, err := Encode(c)
		if err != nil {
			f.Fatal(err)
		}
		list = append(list, data)
	}
	return append(list, nil, []byte{1, 1, 200}, []byte{2, 0, 1, '{', '}'})
}

// FuzzDecode: whatever is read can be written and read again to the same effect.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data)
		if err != nil {
			if c != nil {
				t.Fatalf("%v and %v", c, err)
			}
			return
		}
		again, err := Encode(c)
		if err != nil {
			if errors.Is(err, ErrOversized) {
				return // escapes can make it longer
			}
			t.Fatalf("%+v was read, but: %v", c, err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("%+v was written, but: %v", c, err)
		}
		s := populated(t)
		a, errA := Apply(s, 10, data)
		b, errB := Apply(s, 10, again)
		if a.Digest() != b.Digest() || (errA == nil) != (errB == nil) {
			t.Fatalf("%+v leads to %v (%v), %+v to %v (%v)", c, a, errA, back, b, errB)
		}
	})
}

// FuzzApply: two commands in a row leave a state that a snapshot keeps.
func FuzzApply(f *testing.F) {
	all := seeds(f)
	for i, s := range all {
		f.Add(s, all[(i+1)%len(all)])
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		s := populated(t)
		for i, data := range [][]byte{one, two} {
			before := s.Digest()
			next, err := Apply(s, uint64(i)+10, data)
			if s.Digest() != before {
				t.Fatal("Apply changed the state it was given")
			}
			if err != nil && next.Digest() != before {
				t.Fatalf("refused with %v, but changed", err)
			}
			if next.Generation < s.Generation || len(next.Members) == 0 {
				t.Fatalf("%+v after %+v", next, s)
			}
			s = next
		}
		b, err := MarshalSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := UnmarshalSnapshot(b)
		if err != nil || back.Digest() != s.Digest() {
			t.Fatalf("%+v reads as %+v (%v)", s, back, err)
		}
	})
}

func FuzzUnmarshalSnapshot(f *testing.F) {
	for _, s := range []*State{founded(f), populated(f)} {
		b, err := MarshalSnapshot(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(snapshotVersion + " 00\n{}"))
	f.Add([]byte(snapshotMagic + "9 x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := UnmarshalSnapshot(b)
		if (s == nil) == (err == nil) {
			t.Fatalf("%v and %v", s, err)
		}
		if err == nil {
			s.Digest()
			for _, d := range s.Datasets {
				d.Lacks(func(string) bool { return true })
				Place(d, []PlaceNode{{ID: "a", Serving: true, Stays: true}})
			}
		}
	})
}
