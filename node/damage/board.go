package damage

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/hopmesh/hopmesh/node/api"
)

// Kind is what is damaged.
type Kind string

// The kinds of damage.
const (
	Log        Kind = "log" // the plan's log, votes and snapshots, or the plan itself
	Shard      Kind = "shard"
	Checkpoint Kind = "checkpoint"
	Model      Kind = "model"
	Identity   Kind = "identity"
)

const (
	// maxOwn and maxText bound what a node tells of itself, and so what others keep of it.
	maxOwn  = 64
	maxText = 1024
	// repairedLasts is how long damage that was repaired stays on the board.
	repairedLasts = 24 * time.Hour
	// heardLasts is how long a node's report counts that is not repeated.
	heardLasts = 3 * repeatEvery
)

// Entry is one damage of one node.
type Entry struct {
	Kind Kind `json:"kind"`
	// Key tells entries of a kind apart, such as the name of a file.
	Key      string    `json:"key"`
	What     string    `json:"what"`
	Repaired bool      `json:"repaired,omitempty"`
	Since    time.Time `json:"since"`
}

// Board holds the damage of this node and what others have told of theirs. Its methods may be
// called from any goroutine.
type Board struct {
	log     *slog.Logger
	changed chan struct{} // buffered: this node's own entries have changed

	mu    sync.Mutex
	own   []Entry
	heard map[string]report // by node id
}

// report is what another node has told of itself.
type report struct {
	list []Entry
	at   time.Time
}

// New makes an empty Board. What is found is logged, too.
func New(log *slog.Logger) *Board {
	return &Board{log: log, changed: make(chan struct{}, 1), heard: map[string]report{}}
}

// Found reports damage of this node: what is a sentence, without a full stop, on what is damaged
// and what becomes of it. It replaces an earlier entry of the same kind and key.
func (b *Board) Found(kind Kind, key, what string) {
	if b.put(Entry{Kind: kind, Key: key, What: what}) {
		b.log.Error("found damage", "kind", string(kind), "which", key, "what", what)
	}
}

// Repaired reports that damage of this node was repaired. The entry stays for a day.
func (b *Board) Repaired(kind Kind, key, what string) {
	if b.put(Entry{Kind: kind, Key: key, What: what, Repaired: true}) {
		b.log.Warn("repaired damage", "kind", string(kind), "which", key, "what", what)
	}
}

// put reports whether the entry says anything new.
func (b *Board) put(e Entry) bool {
	e.Key, e.What = cut(e.Key), cut(e.What)
	e.Since = time.Now().UTC()
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.own, func(o Entry) bool { return o.Kind == e.Kind && o.Key == e.Key })
	if at >= 0 {
		if b.own[at].What == e.What && b.own[at].Repaired == e.Repaired {
			return false
		}
		b.own = slices.Delete(b.own, at, at+1)
	}
	if len(b.own) == maxOwn {
		// The oldest that was repaired makes room, else the oldest of all; but not for one that
		// was repaired.
		at := slices.IndexFunc(b.own, func(o Entry) bool { return o.Repaired })
		if at < 0 && e.Repaired {
			return true
		}
		at = max(at, 0)
		b.own = slices.Delete(b.own, at, at+1)
	}
	b.own = append(b.own, e)
	b.nudge()
	return true
}

// cut bounds a text and drops what may not reach a terminal.
func cut(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxText)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}

// Clear removes an entry of this node that is no damage any more.
func (b *Board) Clear(kind Kind, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.own)
	b.own = slices.DeleteFunc(b.own, func(o Entry) bool { return o.Kind == kind && o.Key == key })
	if len(b.own) != before {
		b.nudge()
	}
}

// nudge is called with mu held.
func (b *Board) nudge() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Own lists the damage of this node.
func (b *Board) Own() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.own = slices.DeleteFunc(b.own, func(e Entry) bool { return e.Repaired && now.Sub(e.Since) > repairedLasts })
	return slices.Clone(b.own)
}

// decode reads what another node tells of itself.
func decode(body []byte) ([]Entry, error) {
	var list []Entry
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	list = list[:min(len(list), maxOwn)]
	for i := range list {
		list[i].Kind, list[i].Key, list[i].What = Kind(cut(string(list[i].Kind))), cut(list[i].Key), cut(list[i].What)
	}
	return list, nil
}

// hear takes what another node tells of itself.
func (b *Board) hear(id string, list []Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(list) == 0 {
		delete(b.heard, id)
		return
	}
	if _, before := b.heard[id]; !before && len(b.heard) >= maxNodes {
		return
	}
	b.heard[id] = report{list, time.Now()}
}

// maxNodes bounds how many nodes' reports are kept. Only members can report.
const maxNodes = 4096

// All lists the damage of all nodes for a status. name returns the name of the node with an id,
// or "" if the mesh has none.
func (b *Board) All(self string, name func(id string) string) []api.Damage {
	var list []api.Damage
	add := func(node string, e Entry) {
		list = append(list, api.Damage{Kind: string(e.Kind), Node: node, What: e.What, Repaired: e.Repaired})
	}
	for _, e := range b.Own() {
		add(self, e)
	}
	b.mu.Lock()
	for id, r := range b.heard {
		if time.Since(r.at) > heardLasts {
			delete(b.heard, id)
			continue
		}
		if node := name(id); node != "" {
			for _, e := range r.list {
				add(node, e)
			}
		}
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y api.Damage) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.What, y.What))
	})
	return list
}
