package leap

import (
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// Settings are those of leap.
type Settings struct {
	Cache     int    // rows of other nodes to keep; strategy.Asked: as memory has room
	Mode      string // auto, stay or migrate
	Pregather bool   // rows of all groups of a step are requested at once
	Dedup     bool   // a row is requested once, however many groups need it
	Merge     string // auto, off, or the number of slots
	Balance   bool   // nodes compute roots of owners that have more to do
	SyncEvery int    // local updates between two reductions; 1: none
}

const (
	stays    = "stay"
	migrates = "migrate"
)

func (s *Settings) keys() strategy.Keys {
	return strategy.Keys{
		strategy.Cache(&s.Cache, "leap.cache"),
		strategy.Word(&s.Mode, "leap.mode",
			"whether models tour the nodes that have the roots; auto lets them stay where touring changes nothing",
			strategy.Auto, stays, migrates),
		strategy.Switch(&s.Pregather, "leap.pregather",
			"ask once for the rows of all that a node computes in a step, and not group by group"),
		strategy.Switch(&s.Dedup, "leap.dedup",
			"ask for a row once, however many groups need it"),
		strategy.Text(&s.Merge, "leap.merge", "auto|off|SLOTS", strategy.Auto,
			"how many slots a step of touring models has: as many as nodes (off), as epochs are fastest with (auto: without {deterministic}, the last digits of weights then depend on measured times), or at most so many",
			checkMerge),
		strategy.Switch(&s.Balance, "leap.balance",
			"where nodes hold copies of others' shards, have them compute roots of owners that have more to do"),
		strategy.Number(&s.SyncEvery, "leap.sync_every",
			"how many steps touring models update themselves before they are averaged, where a job that is interrupted goes on from; 1: gradients are added up in each step",
			strategy.Whole{Unit: "STEPS", Default: 1}),
	}
}

// Of returns leap's settings of a job, which have been checked.
func Of(job *strategy.Settings) Settings {
	var s Settings
	_ = s.keys().Parse(job.Values)
	return s
}

// declaration is what leap declares of its settings.
var declaration = strategy.Declaration{
	Name: Name, Exact: true, Learns: strategy.Learns{Links: true, Embeddings: true},
	Keys:          func() strategy.Keys { return new(Settings).keys() },
	CheckSettings: checkSettings,
	CheckNodes:    checkNodes,
	Begins:        begins,
	Describe:      describe,
	Same:          func(a, b *strategy.Settings) bool { return Of(a).SyncEvery == Of(b).SyncEvery },
}

func checkSettings(job *strategy.Settings) error {
	switch s := Of(job); {
	case s.SyncEvery > 1 && s.Mode == stays:
		return fmt.Errorf("leap.sync_every=%d: a model that stays and updates itself would learn from its own node's roots alone: choose leap.mode=%s, or leave one of the two out", s.SyncEvery, migrates)
	case s.SyncEvery > 1 && job.Deterministic:
		return fmt.Errorf("leap.sync_every=%d: models that update themselves are as many as nodes, so their weights depend on how many there are, and {deterministic} promises that they don't: leave one of the two out", s.SyncEvery)
	case s.SyncEvery > 1 && job.Strategy != Name:
		return fmt.Errorf("leap.sync_every=%d: only models that tour update themselves between averages: choose {strategy} %s, or leave it out", s.SyncEvery, Name)
	case s.Mode == stays && s.Merge != strategy.Auto:
		return fmt.Errorf("leap.merge=%s: models that stay have no slots to merge: choose leap.mode=%s, or leave one of the two out", s.Merge, migrates)
	}
	return nil
}

func checkMerge(value string) error {
	if value == strategy.Auto || value == strategy.Off {
		return nil
	}
	if n, err := strconv.Atoi(value); err != nil || n < 1 || strconv.Itoa(n) != value {
		return fmt.Errorf("it is %s, %s, or a number of slots from 1 on", strategy.Auto, strategy.Off)
	}
	return nil
}

func checkNodes(job *strategy.Settings, nodes int) error {
	s := Of(job)
	if slots := s.slots(); slots > nodes {
		return fmt.Errorf("leap.merge=%d: on %d nodes a step has at most %d slots, one for each model: choose 1 to %d, %s or %s", slots, nodes, nodes, nodes, strategy.Auto, strategy.Off)
	}
	return nil
}

// slots returns how many slots were asked for; 0: no number was.
func (s *Settings) slots() int {
	n, err := strconv.Atoi(s.Merge)
	if err != nil {
		return 0
	}
	return n
}
