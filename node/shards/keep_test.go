package shards

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// What the plan says is here is looked for at the start, by size.
func TestFilesLostWhileStopped(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 10) },
		"removed":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.bring(500, 600)
				w.run("a")
				stop := w.run("b")
				w.place("b", "a")
				w.until("both hold all", w.settled("b", "a"))
				stop()
				if err := harm(w.file("b", 1)); err != nil {
					t.Fatal(err)
				}
				before := w.sent("a")
				w.run("b")
				w.until("the plan knows", func() bool { return w.plan().Owner(1) == "a" || w.sent("a") > before })
				settled := w.settled("b", "a")
				w.until("b has it again", func() bool {
					info, err := os.Stat(w.file("b", 1)) // the plan may not know yet that it was lost
					return err == nil && info.Size() == 600 && settled()
				})
				w.whole("b")
				if got := w.sent("a") - before; got != 600 {
					t.Errorf("%d bytes came for a shard of 600", got)
				}
			})
		})
	}
}

// A restart by itself moves nothing and says nothing.
func TestRestartCopiesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500, 600)
		w.run("a")
		stop := w.run("b")
		w.place("a", "b")
		w.until("both hold all", w.settled("a", "b"))
		before, index := w.sent("a", "b"), w.index
		stop()
		w.run("b")
		<-time.After(time.Minute)
		if w.sent("a", "b") != before || w.index != index {
			t.Errorf("%d bytes moved, %d changes of the plan", w.sent("a", "b")-before, w.index-index)
		}
	})
}

// What a node has lost is named even if it is not wanted there any more, so that nothing is fetched.
func TestLossOfWhatNobodyWants(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		said := new(heard)
		w.damage = said
		w.run("a")
		stop := w.run("b")
		w.place("a", "b")
		w.until("both hold it", w.settled("a", "b"))
		stop()
		if err := os.Remove(w.file("b", 0)); err != nil {
			t.Fatal(err)
		}
		w.place("a", "c") // which is away, so that the second still counts as a holder
		if d := w.plan(); !d.Holds("b", 0) || d.Wants("b", 0) {
			t.Fatalf("the plan is %+v", d.Shards)
		}
		w.run("b")
		w.until("the plan forgets it", func() bool { return !w.plan().Holds("b", 0) })
		<-time.After(restEvery)
		if found, repaired := said.all(); len(found) != 1 || len(repaired) != 1 {
			t.Errorf("named: %q, repaired: %q", found, repaired)
		}
	})
}

// A file that vanishes while the node runs is noticed when it is asked for.
func TestFileThatVanishes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		w.run("a")
		w.run("b")
		w.place("a", "b")
		w.until("both hold it", w.settled("a", "b"))
		if err := os.Remove(w.file("a", 0)); err != nil {
			t.Fatal(err)
		}
		w.run("c")
		w.place("a", "b", "c")
		w.until("all three hold it", w.settled("a", "b", "c"))
		w.whole("a")
	})
}

// The last copy of a shard stays where it is, whatever the plan thinks of that
// node, and is put to use again.
func TestLastCopyIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		stop := w.run("a")
		<-time.After(5 * time.Second)
		stop()
		w.do(plan.RemoveMember{ID: "a", Why: plan.Removed})
		w.run("a")
		<-time.After(time.Minute)
		if len(w.files("a")) != 1 {
			t.Fatal("the last copy is gone")
		}
		w.do(plan.AddMember{Member: plan.Member{ID: "a", Name: "na", PublicKey: "k"}})
		w.until("it is known again", func() bool { return w.plan().Owner(0) == "a" })
	})
}

func TestVerify(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500, 600)
		w.run("a")
		w.run("b")
		w.place("a", "b")
		w.until("both hold all", w.settled("a", "b"))
		k := w.keeper("b")
		want := func(shard int, want Verdict) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if got, err := k.Verify(ctx, dataset, shard); got != want || err != nil {
				t.Errorf("shard %d is %s, not %s: %v", shard, got, want, err)
			}
		}
		want(0, Whole)
		want(1, Whole)
		want(2, Absent)
		want(-1, Absent)
		if got, _ := w.keeper("a").Verify(t.Context(), "../../../../../etc", 0); got != Absent {
			t.Errorf("a dataset that is none is %s", got)
		}
		b, err := os.ReadFile(w.file("b", 1))
		if err != nil {
			t.Fatal(err)
		}
		b[300] ^= 4
		if err := os.WriteFile(w.file("b", 1), b, 0o600); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.down["a"] = true
		w.mu.Unlock()
		want(0, Whole)
		want(1, Damaged)
		w.until("the plan knows", func() bool { return !w.plan().Holds("b", 1) })
		w.mu.Lock()
		w.down["a"] = false
		w.mu.Unlock()
		w.until("it is replaced", w.settled("a", "b"))
		w.whole("b")
		want(1, Whole)
	})
}

// Whoever asks again while a file is being read waits for the same.
func TestVerifyThatTakesLong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500)
		w.run("a")
		<-time.After(time.Second)
		k := w.keeper("a")
		for range maxHashing {
			k.checks.hashing <- struct{}{}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := k.Verify(ctx, dataset, 0); got != Pending || err != nil {
			t.Fatalf("%s, %v", got, err)
		}
		<-k.checks.hashing
		if got, err := k.Verify(t.Context(), dataset, 0); got != Whole || err != nil {
			t.Fatalf("%s, %v", got, err)
		}
		<-k.checks.hashing
	})
}

// What an import makes is its own until the plan knows of it.
func TestImport(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.run("a")
		k := w.keeper("a")
		if _, err := k.Begin("../../etc"); err == nil {
			t.Error("began an import into another folder")
		}
		s, err := k.Begin(dataset)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(s.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.Dir, "0000.safetensors"), []byte("shard"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Publish(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if got := w.files("a"); !slices.Equal(got, []string{"0000.safetensors"}) || !k.Importing(dataset) {
			t.Fatalf("the import has %v", got)
		}
		// It ends without the plan knowing of the dataset.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		w.until("nothing is left", func() bool {
			entries, err := os.ReadDir(w.folder("a"))
			return err == nil && len(entries) == 0
		})
	})
}

func TestLeftoversOfADeadImport(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, dir := range []string{dataset + ".import", dataset + ".scratch", "not-ours"} {
			if err := os.MkdirAll(filepath.Join(w.folder("a"), dir, "deep"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		w.open("a")
		entries, err := os.ReadDir(w.folder("a"))
		if err != nil || len(entries) != 1 || entries[0].Name() != "not-ours" {
			t.Errorf("left: %v, %v", entries, err)
		}
	})
}

func TestServeRefuses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bring(500, 600)
		if err := os.Rename(w.file("a", 1), filepath.Join(w.folder("a"), dataset, "0001.part")); err != nil {
			t.Fatal(err)
		}
		k := w.open("a")
		good := request{key{dataset, 0}, 100, 400}
		dst := make([]byte, 400)
		ask := func(peer string, body []byte) error {
			return k.Serve(t.Context(), peer, uint64(len(body)), &asked{body, dst})
		}
		if err := ask("b", good.append(nil)); err != nil {
			t.Fatalf("a fair request: %v", err)
		}
		for name, c := range map[string]struct {
			peer string
			body []byte
			want error
		}{
			"a stranger":          {"z", good.append(nil), errStranger},
			"beyond the end":      {"b", request{key{dataset, 0}, 101, 400}.append(nil), errBadRequest},
			"far beyond the end":  {"b", request{key{dataset, 0}, 1<<64 - 1, 400}.append(nil), errBadRequest},
			"a part":              {"b", request{key{dataset, 1}, 0, 400}.append(nil), errNotHere},
			"no such shard":       {"b", request{key{dataset, 1 << 31}, 0, 400}.append(nil), errNotHere},
			"no such dataset":     {"b", request{key{"00000000000000ab", 0}, 0, 400}.append(nil), errNotHere},
			"too much":            {"b", request{key{dataset, 0}, 0, pieceBytes + 1}.append(nil), errBadRequest},
			"nothing":             {"b", request{key{dataset, 0}, 0, 0}.append(nil), errBadRequest},
			"a request cut short": {"b", good.append(nil)[:requestBytes-1], errBadRequest},
		} {
			if err := ask(c.peer, c.body); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add(request{key{dataset, 3}, 1 << 40, pieceBytes}.append(nil))
	f.Add([]byte("../../../../etc/passwd......"))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := parseRequest(b)
		if err != nil {
			return
		}
		if !isID(q.dataset) || strings.ContainsAny(q.dataset, "./") || q.length == 0 || q.length > pieceBytes || q.shard < 0 {
			t.Fatalf("taken: %+v", q)
		}
		if got := q.append(nil); string(got) != string(b) {
			t.Fatalf("%x became %x", b, got)
		}
	})
}
