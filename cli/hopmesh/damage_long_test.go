//go:build long

package main

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// Three processes. Bits flip in every file of one's log while it is stopped, and it is started
// again: it comes back by itself, every status names it, and all plans are equal. Then the same
// happens to the one that leads.
func TestFlippedBitsOfARealLog(t *testing.T) {
	t.Parallel()
	dir := box(t)
	first := start(t, filepath.Join(dir, "n1"), "--name", "n1", "--listen", "127.0.0.1:0", "--bootstrap")
	until(t, "the first is ready", first.ready)
	join := strings.Fields(joinLine.FindStringSubmatch(first.out.String())[1])
	all := []*daemon{first}
	for _, name := range []string{"n2", "n3"} {
		d := start(t, filepath.Join(dir, name), slices.Concat([]string{"--name", name, "--listen", "127.0.0.1:0"}, join)...)
		all = append(all, d)
	}
	until(t, "there are three voters", func() bool {
		_, _, voters := first.census()
		return voters == 3
	})
	r := rand.New(rand.NewPCG(1, 18))
	for range 4 {
		leader := first.leader()
		i := slices.IndexFunc(all, func(d *daemon) bool { return (filepath.Base(d.dir) == leader) == (r.IntN(2) == 0) })
		if i < 0 {
			continue
		}
		d := all[i]
		d.signal(syscall.SIGKILL)
		<-d.done
		spoil(t, filepath.Join(d.dir, "raft"), r)
		all[i] = start(t, d.dir, "--listen", "127.0.0.1:0")
		name := filepath.Base(d.dir)
		until(t, name+" is back and named by all", func() bool {
			return !slices.ContainsFunc(all, func(o *daemon) bool {
				var s api.Status
				return o.json(&s, "status") != 0 || !slices.ContainsFunc(s.Damage, func(x api.Damage) bool { return x.Kind == "log" && x.Node == name && x.Repaired })
			})
		})
		until(t, "all plans are equal, with three voters", func() bool {
			digests := map[string]bool{}
			for _, o := range all {
				var p api.Plan
				o.json(&p, "plan", "show")
				digests[p.Digest] = true
				if _, _, voters := o.census(); voters != 3 {
					return false
				}
			}
			return len(digests) == 1
		})
		if strings.Contains(all[i].out.String(), "goroutine ") {
			t.Errorf("it panicked: %s", all[i].out)
		}
		first = all[i]
	}
}

// spoil flips one bit in what is used of each file.
func spoil(t *testing.T, dir string, r *rand.Rand) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[r.IntN(len(bytes.TrimRight(b, "\x00")))] ^= 1 << r.IntN(8)
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
