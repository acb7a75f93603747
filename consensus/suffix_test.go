package consensus

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// fullLog is a log whose writes fail while it is full.
type fullLog struct {
	*raft.InmemStore
	full bool
}

var errFull = errors.New("the disk is full")

func (f *fullLog) StoreLogs(list []*raft.Log) error {
	if f.full {
		return errFull
	}
	return f.InmemStore.StoreLogs(list)
}

func entriesOf(term uint64, first, last uint64) (list []*raft.Log) {
	for i := first; i <= last; i++ {
		list = append(list, &raft.Log{Index: i, Term: term, Data: fmt.Appendf(nil, "%d of %d", i, term)})
	}
	return list
}

// What Raft takes for the last entries is there until others are in their place, however often
// that fails.
func TestSuffixLog(t *testing.T) {
	f := &fullLog{InmemStore: raft.NewInmemStore()}
	s := newSuffixLog(f)
	holds := func(what string, terms ...uint64) {
		t.Helper()
		last, err := s.LastIndex()
		if err != nil || last != uint64(len(terms)) {
			t.Fatalf("%s: the last is %d, %v", what, last, err)
		}
		for i, term := range terms {
			var l raft.Log
			if err := s.GetLog(uint64(i+1), &l); err != nil || l.Term != term || l.Index != uint64(i+1) {
				t.Fatalf("%s: entry %d is %+v, %v", what, i+1, l, err)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.StoreLogs(entriesOf(1, 1, 6)))
	f.full = true
	for from := uint64(5); from >= 3; from-- { // the leader goes further back
		must(s.DeleteRange(from, 6))
		if err := s.StoreLogs(entriesOf(2, from, 7)); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		holds("full", 1, 1, 1, 1, 1, 1)
	}
	must(s.DeleteRange(5, 6))
	f.full = false
	must(s.StoreLogs(entriesOf(2, 5, 7)))
	holds("others are in their place", 1, 1, 1, 1, 2, 2, 2)
	must(s.DeleteRange(6, 7))
	must(s.StoreLogs(entriesOf(3, 8, 8))) // as a leader whose own last entry was the seventh
	holds("they are followed", 1, 1, 1, 1, 2, 2, 2, 3)
	must(s.DeleteRange(1, 8))
	if last, err := s.LastIndex(); err != nil || last != 0 {
		t.Errorf("after all were taken away the last is %d, %v", last, err)
	}
}

// slowLog is a log whose writes begin and then wait.
type slowLog struct {
	*raft.InmemStore
	begins, ends chan struct{}
}

func (l slowLog) StoreLogs(list []*raft.Log) error {
	l.begins <- struct{}{}
	<-l.ends
	return l.InmemStore.StoreLogs(list)
}

// A leader reads its log for its followers while its own disk takes long to write.
func TestSuffixLogReadsWhileItWrites(t *testing.T) {
	slow := slowLog{raft.NewInmemStore(), make(chan struct{}), make(chan struct{})}
	s := newSuffixLog(slow)
	stored := make(chan error)
	for first := uint64(1); first <= 3; first += 2 {
		go func() { stored <- s.StoreLogs(entriesOf(1, first, first+1)) }()
		<-slow.begins
		if first > 1 {
			read := make(chan error, 1)
			go func() {
				_, err := s.LastIndex()
				read <- errors.Join(err, s.GetLog(2, &raft.Log{}))
			}()
			select {
			case err := <-read:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("a read waits for a write")
			}
		}
		slow.ends <- struct{}{}
		if err := <-stored; err != nil {
			t.Fatal(err)
		}
	}
}

// strictLog refuses what a log on disk refuses, gaps and repetitions. A cut may fail, and have
// happened all the same.
type strictLog struct {
	*raft.InmemStore
	r     *rand.Rand
	full  bool // writes fail
	stuck bool // so do cuts
}

func (f *strictLog) StoreLogs(list []*raft.Log) error {
	last, err := f.LastIndex()
	if err != nil {
		return err
	}
	for i, l := range list {
		if last > 0 && l.Index != last+uint64(i)+1 {
			return fmt.Errorf("tried to append entry %d after entry %d", l.Index, last+uint64(i))
		}
	}
	if f.full {
		return errFull
	}
	return f.InmemStore.StoreLogs(list)
}

func (f *strictLog) DeleteRange(first, last uint64) error {
	if !f.stuck {
		return f.InmemStore.DeleteRange(first, last)
	}
	if f.r.IntN(2) == 0 {
		if err := f.InmemStore.DeleteRange(first, last); err != nil {
			return err
		}
	}
	return errFull
}

// Whatever fails, the log is the same as one that can never be full, once it takes entries again,
// and what Raft takes for its entries can be read all the time.
func TestSuffixLogIsALog(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := &strictLog{InmemStore: raft.NewInmemStore(), r: r}
		s, plain := newSuffixLog(f), raft.NewInmemStore()
		last, term := uint64(0), uint64(1) // as Raft knows them
		for range 60 {
			f.full, f.stuck = r.IntN(3) == 0, r.IntN(3) == 0
			from := last + 1
			if last > 2 && r.IntN(2) == 0 {
				from = 2 + r.Uint64N(last-1)
				term++
				if err := s.DeleteRange(from, last); err != nil && !errors.Is(err, errFull) {
					t.Fatal(err)
				} else if err != nil {
					sameEntries(t, seed, s, plain, last)
					continue // Raft stores nothing then
				}
			}
			list := entriesOf(term, from, from+r.Uint64N(4))
			if err := s.StoreLogs(list); err != nil {
				if !errors.Is(err, errFull) {
					t.Fatalf("seed %d: %v", seed, err)
				}
				sameEntries(t, seed, s, plain, last)
				continue
			}
			if from <= last {
				if err := plain.DeleteRange(from, last); err != nil {
					t.Fatal(err)
				}
			}
			if err := plain.StoreLogs(list); err != nil {
				t.Fatal(err)
			}
			last = list[len(list)-1].Index
			sameEntries(t, seed, s, plain, last)
			sameEntries(t, seed, f, plain, last)
			if kept := len(*s.gone.Load()); kept > 0 {
				t.Fatalf("seed %d: %d entries are kept in memory", seed, kept)
			}
		}
	}
}

// sameEntries fails the test unless a log has the same entries as another, up to one.
func sameEntries(t *testing.T, seed uint64, log raft.LogStore, want *raft.InmemStore, last uint64) {
	t.Helper()
	if end, err := log.LastIndex(); err != nil || end != last {
		t.Fatalf("seed %d: the last is %d and not %d: %v", seed, end, last, err)
	}
	for i := uint64(1); i <= last; i++ {
		var got, entry raft.Log
		if err := errors.Join(log.GetLog(i, &got), want.GetLog(i, &entry)); err != nil || got.Term != entry.Term || got.Index != i {
			t.Fatalf("seed %d: entry %d is of term %d and should be of %d: %v", seed, i, got.Term, entry.Term, err)
		}
	}
}
