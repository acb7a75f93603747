package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// Damage that a node finds must stand in its status soon, and in that of all others. That it finds what
// it reads is checked by what the files hold in the end. Damage of what nobody reads has no effect:
// most bits of a log's file are never used, and a checkpoint is replaced by the next. So this does not
// ask the status what was found, but the log and the disk.

// toName is how long a node that has found damage may take to say so in its status.
const toName = 10 * time.Second

// finds are what the log says where damage is found, before the status can know, and the kinds by
// which the status names it.
var finds = map[string]string{
	"this node has lost a shard":     "shard",
	"the last checkpoint is damaged": "checkpoint",
}

// A finding is damage that a node has found.
type finding struct {
	kind string
	at   time.Time
}

// findings are what a node found, by its log and disk, and has not named yet.
type findings struct {
	mu    sync.Mutex
	open  []finding
	named map[string]int // by kind
	aside bool           // its log was set aside
}

// found notes damage of a kind.
func (f *findings) found(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, finding{kind, time.Now()})
}

// forget forgets what was not named yet, since the node ends.
func (f *findings) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = nil
}

// compare takes what a node's status names, and returns an error if it does not name what the node has
// found a while ago.
func (f *findings) compare(names []api.Damage) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var late []string
	f.open = slices.DeleteFunc(f.open, func(o finding) bool {
		if slices.ContainsFunc(names, func(d api.Damage) bool { return d.Kind == o.kind }) {
			f.named[o.kind]++
			return true
		}
		if time.Since(o.at) <= toName {
			return false
		}
		late = append(late, o.kind)
		return true
	})
	if late == nil {
		return nil
	}
	return fmt.Errorf("damage of %s was found, and %s later the status names %v", strings.Join(late, ", "), toName, names)
}

// listener passes a node's log on, and notes what it says of damage.
type listener struct {
	slog.Handler
	findings *findings
}

func (l listener) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || l.Handler.Enabled(ctx, level)
}

func (l listener) Handle(ctx context.Context, r slog.Record) error {
	for text, kind := range finds {
		if strings.HasPrefix(r.Message, text) {
			l.findings.found(kind)
		}
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

func (l listener) WithAttrs(a []slog.Attr) slog.Handler {
	return listener{l.Handler.WithAttrs(a), l.findings}
}

func (l listener) WithGroup(name string) slog.Handler {
	return listener{l.Handler.WithGroup(name), l.findings}
}

// listen follows what a node finds, from its next start on.
func (w *world) listen(i *nodetest.Instance) {
	w.findings = &findings{named: map[string]int{}}
	i.Options.Log = slog.New(listener{i.Options.Log.Handler(), w.findings})
}

// look compares what the node found whose files are damaged with its status.
func (w *world) look() {
	i := w.hurt
	if i == nil || !i.Running() {
		return
	}
	if ended, _ := i.Ended(); ended {
		return
	}
	f := w.findings
	if _, err := os.Stat(filepath.Join(i.Options.DataDir, "raft.damaged")); err == nil && !f.aside {
		f.aside = true
		f.found("log")
	}
	if err := f.compare(own(i)); err != nil {
		w.c.T.Errorf("%s: %v", i.Name, err)
	}
}

// leaves looks once more at a node that is about to end. What it has found and not named yet it need
// not name any more: the next process finds it.
func (w *world) leaves(i *nodetest.Instance) {
	if i == w.hurt {
		w.look()
		w.findings.forget()
	}
}

// own lists the damage of a node that it names itself.
func own(i *nodetest.Instance) []api.Damage {
	return slices.DeleteFunc(i.Status().Damage, func(d api.Damage) bool { return d.Node != i.Name })
}

// rest waits, and looks meanwhile.
func (w *world) rest(d time.Duration) {
	const step = time.Second / 4
	for ; d > step; d -= step {
		<-time.After(step)
		w.look()
	}
	<-time.After(d)
	w.look()
}

// named waits until all nodes name what the one found whose files were damaged.
func (w *world) named() {
	i := w.hurt
	if i == nil || !slices.Contains(w.staying(), i) {
		return
	}
	w.rest(toName + time.Second)
	w.c.Wait("all nodes name the damage of "+i.Name, time.Minute, func() bool {
		want := own(i)
		return !slices.ContainsFunc(w.staying(), func(n *nodetest.Instance) bool {
			if w.going[n] {
				return false
			}
			has := n.Status().Damage
			return slices.ContainsFunc(want, func(d api.Damage) bool { return !slices.Contains(has, d) })
		})
	})
	w.c.T.Logf("%s found and named, by kind: %v", i.Name, w.findings.named)
}
