package node_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// kindOf returns what a file of a node's log is.
func kindOf(name string) string {
	switch base := filepath.Base(name); {
	case strings.HasSuffix(base, ".wal"):
		return "log segment"
	case strings.HasSuffix(base, ".snapshot"):
		return "snapshot"
	case base == "ledger":
		return "ledger"
	}
	return ""
}

// filesOf lists the files of a node's log by kind.
func filesOf(t *testing.T, n *nodetest.Instance) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(filepath.Join(n.Options.DataDir, "raft"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && kindOf(path) != "" {
			all[kindOf(path)] = append(all[kindOf(path)], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// flipBit flips a bit in what is used of a file.
func flipBit(t *testing.T, path string, r *rand.Rand) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := r.IntN(len(bytes.TrimRight(b, "\x00")))
	b[at] ^= 1 << r.IntN(8)
	if _, err := f.WriteAt(b[at:at+1], int64(at)); err != nil {
		t.Fatal(err)
	}
}

// silent reports whether a node has said nothing of damage since it started.
func silent(n *nodetest.Instance) bool {
	return !slices.ContainsFunc(n.Status().Damage, func(d api.Damage) bool { return d.Node == n.Name })
}

// flipEach flips a bit at random places of each kind of file of a node that is down. It counts
// what becomes of it: the node comes back with the others' plan, and says so if anything was read
// that had changed.
func flipEach(t *testing.T, places int) {
	nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
		for range 3 {
			c.Add().KeepOnDisk()
		}
		c.Enter(c.Nodes)
		c.WaitVoters(3)
		busy(c, 700) // more entries than a log keeps beside its snapshots
		c.Wait("all have snapshots", 5*time.Minute, func() bool {
			return !slices.ContainsFunc(c.Nodes, func(n *nodetest.Instance) bool { return len(filesOf(t, n)["snapshot"]) == 0 })
		})
		n := notLeading(c)
		r := rand.New(rand.NewPCG(18, 1))
		for _, kind := range []string{"log segment", "snapshot", "ledger"} {
			named, unused := 0, 0
			for range places {
				// A node that came back makes its snapshots anew.
				c.Wait("it has a "+kind, 5*time.Minute, func() bool { return len(filesOf(t, n)[kind]) > 0 })
				_ = n.Stop()
				files := filesOf(t, n)[kind]
				flipBit(t, files[r.IntN(len(files))], r)
				n.Start()
				c.Wait("it is back", 2*time.Minute, func() bool { return n.Status().Ready })
				c.WaitVoters(3)
				c.WaitEqual(time.Minute)
				if silent(n) {
					unused++
					continue
				}
				named++
				markedByAll(c, n)
			}
			t.Logf("%s: %d places, %d named by every status and repaired, %d without effect", kind, places, named, unused)
			if kind != "log segment" && unused > 0 {
				t.Errorf("%d of %d flips in a %s went unnoticed", unused, places, kind)
			}
		}
	})
}

// busy gives commands, so that there are entries and snapshots.
func busy(c *nodetest.Cluster, commands int) {
	c.T.Helper()
	api := c.Leader().API()
	for range commands {
		k, err := api.CreateToken(c.T.Context(), time.Hour, 0)
		if err == nil {
			err = api.RevokeToken(c.T.Context(), k.ID)
		}
		if err != nil {
			c.T.Fatal(err)
		}
	}
}

func TestFlippedBitsInTheLog(t *testing.T) { flipEach(t, 5) }

// A mesh of one whose log is damaged goes on, after recovery, with what can be read of it.
func TestRecoveryOfADamagedLog(t *testing.T) {
	nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Add()
		n.KeepOnDisk()
		c.Enter(c.Nodes)
		id := n.Members()[0].ID
		n.Token()
		kept := n.Plan()
		busy(c, 1)
		_ = n.Stop()
		path := filesOf(t, n)["log segment"][0]
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[bytes.LastIndex(b, []byte(`"hash":`))] ^= 1 // of the token that came last
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		n.Start()
		c.Wait("it says so", time.Minute, func() bool { return marked(n, n, false) })
		_ = n.Stop()
		n.Recover([]string{id})
		n.Start()
		n.WaitReady()
		if p := n.Plan(); p.Digest != kept.Digest || !silent(n) {
			t.Errorf("%+v, kept %+v; %v", p, kept, n.Status())
		}
	})
}
