package strategy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PipeSettings are those of pipe, and of graph, which is one stage of it.
type PipeSettings struct {
	Stages int    `json:"stages,omitempty"` // 0: as many as nodes, but no more than layers; or Asked
	Ways   int    `json:"ways,omitempty"`   // 0: one for pipe, for graph as many as nodes; or Asked
	Chunks int    `json:"chunks,omitempty"` // of all ways; 0: as many as shards
	Halo   string `json:"halo,omitempty"`   // exact (which is ""), previous-epoch, sampled or skip
	// Share is the share of rows that are sampled. Age is for how many epochs sending
	// is skipped. 0: as ShareOf and AgeOf return.
	Share   int  `json:"share,omitempty"` // in percent
	Age     int  `json:"age,omitempty"`
	Ordered bool `json:"ordered,omitempty"` // pipe.shuffle=off: chunks in the same order each epoch
	Period  int  `json:"period,omitempty"`  // epochs of a history; 0: as PeriodOf returns
	// Histories is how histories are made: made (which is ""), left or zeros.
	Histories string `json:"histories,omitempty"`
	Single    bool   `json:"single,omitempty"` // pipe.compensate=off: gradients at histories count once
	// KeepGradients is pipe.gradients=kept: the last epoch's gradients stand in for
	// missing ones.
	KeepGradients bool `json:"keep_gradients,omitempty"`
	// Keep is pipe.recompute=off: activations are kept for backward. Again is on: they
	// are recomputed. Neither: they are kept where memory has room.
	Keep  bool `json:"keep,omitempty"`
	Again bool `json:"again,omitempty"`
}

// The policies of pipe.halo.
const (
	RowsExact    = "exact"
	RowsPrevious = "previous-epoch"
	RowsSampled  = "sampled"
	RowsSkip     = "skip"
)

// The values of pipe.histories.
const (
	HistoriesMade  = "made"  // of the weights at the start of a period
	HistoriesLeft  = "left"  // by the epoch before the period, and made for the first
	HistoriesZeros = "zeros" // the same, but zeros for the first, as published
)

const (
	kept    = "kept"
	dropped = "dropped"

	usualPeriod = 23 // as published
	usualShare  = 10 // percent
	usualAge    = 1
	mostPipes   = 1 << 10 // stages and ways

	// The words for the defaults of numbers.
	nodes   = "nodes"
	usually = "usual"
	shards  = "shards"
)

// Asked makes the nodes choose the number of stages or ways when they have met.
const Asked = -1

// Piped reports whether a strategy trains the whole graph in each step, with rows that
// travel between layers.
func Piped(strategy string) bool { return strategy == Pipe || strategy == Graph }

// WaysOf returns how many ways a job has on so many nodes. If the nodes have yet to
// choose, it is the default.
func (s *PipeSettings) WaysOf(strategy string, nodes int) int {
	switch {
	case s.Ways > 0:
		return s.Ways
	case strategy == Graph:
		return nodes
	}
	return 1
}

// StagesOf returns how many stages there are at most, for a model of so many layers.
func (s *PipeSettings) StagesOf(strategy string, nodes, layers int) int {
	switch {
	case strategy == Graph:
		return 1
	case s.Stages > 0:
		return s.Stages
	}
	return min(layers, max(1, nodes/s.WaysOf(strategy, nodes)))
}

// ChunksOf returns how many chunks a graph of so many shards has.
func (s *PipeSettings) ChunksOf(strategy string, nodes, shards int) int {
	switch {
	case strategy == Graph:
		return s.WaysOf(strategy, nodes)
	case s.Chunks > 0:
		return s.Chunks
	}
	return shards
}

// PeriodOf returns for how many epochs a history is kept.
func (s *PipeSettings) PeriodOf() int { return usual(s.Period, usualPeriod) }

// ShareOf returns the share of rows that are sampled.
func (s *PipeSettings) ShareOf() float64 { return float64(usual(s.Share, usualShare)) / 100 }

// AgeOf returns for how many epochs rows are not sent again.
func (s *PipeSettings) AgeOf() int { return usual(s.Age, usualAge) }

func usual(n, usual int) int {
	if n == 0 {
		return usual
	}
	return n
}

// HaloOf returns the policy of the halo.
func (s *PipeSettings) HaloOf() string { return orElse(s.Halo, RowsExact) }

// HistoriesOf returns how histories are made.
func (s *PipeSettings) HistoriesOf() string { return orElse(s.Histories, HistoriesMade) }

// Chained reports whether an epoch depends on rows or gradients of earlier epochs,
// which are in no checkpoint.
func (s *PipeSettings) Chained() bool { return s.HistoriesOf() != HistoriesMade || s.KeepGradients }

// check returns an error if settings are invalid or contradict each other.
func (s *PipeSettings) check(strategy string, deterministic bool) error {
	for _, n := range []struct {
		key   string
		n     int
		least int
	}{{"stages", s.Stages, Asked}, {"ways", s.Ways, Asked}, {"chunks", s.Chunks, 0}, {"period", s.Period, 0}, {"age", s.Age, 0}} {
		if n.n < n.least || n.n > mostCount {
			return fmt.Errorf("pipe.%s=%d: it is a whole number from 1 to %d", n.key, n.n, mostCount)
		}
	}
	switch {
	case s.Stages > mostPipes || s.Ways > mostPipes:
		return fmt.Errorf("pipe.stages=%d, pipe.ways=%d: there are %d of each at most", s.Stages, s.Ways, mostPipes)
	case !slices.Contains([]string{"", RowsExact, RowsPrevious, RowsSampled, RowsSkip}, s.Halo):
		return fmt.Errorf("pipe.halo=%s: it is one of %s", s.Halo, strings.Join([]string{RowsExact, RowsPrevious, RowsSampled, RowsSkip}, ", "))
	case !slices.Contains([]string{"", HistoriesMade, HistoriesLeft, HistoriesZeros}, s.Histories):
		return fmt.Errorf("pipe.histories=%s: it is one of %s, %s, %s", s.Histories, HistoriesMade, HistoriesLeft, HistoriesZeros)
	case s.Share < 0 || s.Share > 100:
		return fmt.Errorf("pipe.share=%d: it is a whole number from 1 to 100, in percent", s.Share)
	case s.Keep && s.Again:
		return errors.New("pipe.recompute is on and off: it is one of the two, or auto")
	case !Piped(strategy):
		return nil
	case s.Chunks > 0 && s.Stages > s.Chunks:
		return fmt.Errorf("pipe.stages=%d, pipe.chunks=%d: with fewer chunks than stages some stages never have any to do: choose %d stages or fewer, or more chunks", s.Stages, s.Chunks, s.Chunks)
	case s.Chunks > 0 && s.Ways > s.Chunks:
		return fmt.Errorf("pipe.ways=%d, pipe.chunks=%d: each way has one chunk at least: choose %d ways or fewer, or more chunks", s.Ways, s.Chunks, s.Chunks)
	case s.Share != 0 && s.Halo != RowsSampled:
		return fmt.Errorf("pipe.share=%d is for pipe.halo=%s: leave it out, or choose that", s.Share, RowsSampled)
	case s.Age != 0 && s.Halo != RowsSkip:
		return fmt.Errorf("pipe.age=%d is for pipe.halo=%s: leave it out, or choose that", s.Age, RowsSkip)
	case strategy == Pipe && s.HaloOf() != RowsExact && (s.Ways < 2 || s.Chunks != s.Ways):
		return fmt.Errorf("pipe.halo=%s: histories are made of rows of now, so this is for chunks that have none, one for each of several ways: set pipe.chunks and pipe.ways to the same number, or choose {strategy} %s, or %s", s.Halo, Graph, RowsExact)
	case strategy == Graph && deterministic && s.Ways < 1:
		return fmt.Errorf("{deterministic} promises the same bits on any number of nodes, and with {strategy} %s they depend on the ways, which are as many as nodes where nothing is said: choose {pipe.ways}=N", Graph)
	}
	return nil
}

// checkShards returns an error if a job can't begin on a dataset of so many shards.
func (s *PipeSettings) checkShards(shards int) error {
	if chunks := max(s.Chunks, s.Ways); chunks > shards {
		return fmt.Errorf("the dataset has %d shards, which can't be %d chunks, nor as many ways: choose %d at most with {pipe.chunks} and pipe.ways, or import it with more {dataset.shards}", shards, chunks, shards)
	}
	if s.Chunks == 0 && s.Stages > shards {
		return fmt.Errorf("pipe.stages=%d: the dataset has %d shards, which are the chunks, and with fewer chunks than stages some stages never have any to do: choose %d stages or fewer, or import it with more {dataset.shards}", s.Stages, shards, shards)
	}
	return nil
}

// checkNodes returns an error if a job can't begin on so many nodes. Ways of one stage
// may be more than nodes: each node then does several, as where nodes have left, and
// the result is the same.
func (s *PipeSettings) checkNodes(strategy string, nodes int) error {
	stages, ways := s.StagesOf(strategy, nodes, 1), s.WaysOf(strategy, nodes)
	if strategy == Pipe && stages > 1 && stages*ways > nodes {
		return fmt.Errorf("%s of %s are work for %d nodes, and the dataset is on %d: choose fewer with {pipe.stages} and pipe.ways", counted(stages, "stage"), counted(ways, "way"), stages*ways, nodes)
	}
	return nil
}

// counted returns a number with its noun.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// pipeAndGraph marks settings that apply to both.
const pipeAndGraph = Pipe + ", " + Graph

var pipeKeys = []key{
	{Key{"pipe.stages", Pipe, "nodes|auto|N", nodes,
		"how many stages the layers are cut into: each node has one, as far as there are layers, or what the nodes choose by what they measure"},
		func(s *Settings, v string) error { return askedOr(v, nodes, &s.Pipe.Stages) },
		func(s *Settings) string { return chosenOr(s.Pipe.Stages, nodes) }},
	{Key{"pipe.ways", pipeAndGraph, "usual|auto|N", usually,
		"how many nodes share a stage, each with a part of the vertices, and bring each other rows before each layer: usually one or, for graph, as many as there are; or what the nodes choose"},
		func(s *Settings, v string) error { return askedOr(v, usually, &s.Pipe.Ways) },
		func(s *Settings) string { return chosenOr(s.Pipe.Ways, usually) }},
	{Key{"pipe.chunks", Pipe, "shards|N", shards,
		"how many chunks the vertices are in, which go through the stages one after the other: more have less idle time, and older rows of each other"},
		func(s *Settings, v string) error { return some(v, shards, &s.Pipe.Chunks, mostCount) },
		func(s *Settings) string { return someOr(s.Pipe.Chunks, shards) }},
	{Key{"pipe.halo", pipeAndGraph, "exact|previous-epoch|sampled|skip", RowsExact,
		"which rows ways see of each other: those of now, those of the last epoch, a share of them, scaled up, or those that were sent some epochs ago"},
		func(s *Settings, v string) error {
			return choose(v, &s.Pipe.Halo, RowsExact, RowsPrevious, RowsSampled, RowsSkip)
		},
		func(s *Settings) string { return s.Pipe.HaloOf() }},
	{Key{"pipe.share", pipeAndGraph, "PERCENT", "10", "of the rows that ways sample of each other"},
		setShare,
		func(s *Settings) string { return strconv.Itoa(usual(s.Pipe.Share, usualShare)) }},
	{Key{"pipe.age", pipeAndGraph, "EPOCHS", "1", "for how many epochs rows are not sent again where that is skipped"},
		func(s *Settings, v string) error { return whole(v, &s.Pipe.Age, usualAge) },
		func(s *Settings) string { return strconv.Itoa(s.Pipe.AgeOf()) }},
	{Key{"pipe.shuffle", Pipe, "on|off", on,
		"whether each epoch takes the chunks in an order of its own"},
		func(s *Settings, v string) error { return toggle(v, &s.Pipe.Ordered) },
		func(s *Settings) string { return toggled(s.Pipe.Ordered) }},
	{Key{"pipe.period", Pipe, "EPOCHS", "23",
		"for how many epochs chunks see the same history of those that come later"},
		func(s *Settings, v string) error { return whole(v, &s.Pipe.Period, usualPeriod) },
		func(s *Settings) string { return strconv.Itoa(s.Pipe.PeriodOf()) }},
	{Key{"pipe.histories", Pipe, "made|left|zeros", HistoriesMade,
		"what histories are: made of the weights with which a period begins, or what the epoch before it has left, the first made, or zeros, as published; but for made, a job that is interrupted begins anew"},
		func(s *Settings, v string) error {
			return choose(v, &s.Pipe.Histories, HistoriesMade, HistoriesLeft, HistoriesZeros)
		},
		func(s *Settings) string { return s.Pipe.HistoriesOf() }},
	{Key{"pipe.gradients", Pipe, "dropped|kept", dropped,
		"what stands for gradients at histories, which come too late: nothing, or (kept) those of the last epoch, all of which then count once; a job that is interrupted begins anew then"},
		setGradients,
		func(s *Settings) string {
			if s.Pipe.KeepGradients {
				return kept
			}
			return dropped
		}},
	{Key{"pipe.compensate", Pipe, "on|off", on,
		"whether gradients at histories count twice, since half of them are lost"},
		func(s *Settings, v string) error { return toggle(v, &s.Pipe.Single) },
		func(s *Settings) string { return toggled(s.Pipe.Single) }},
	{Key{"pipe.recompute", Pipe, "auto|on|off", Auto,
		"whether backward makes again what forward made, or that is kept, which takes more memory and less time; auto keeps it where there is room"},
		setRecompute,
		func(s *Settings) string {
			switch {
			case s.Pipe.Keep:
				return off
			case s.Pipe.Again:
				return on
			}
			return Auto
		}},
}

// askedOr sets a number from 1 on, the default, or Asked.
func askedOr(value, usual string, to *int) error {
	if value == Auto {
		*to = Asked
		return nil
	}
	if some(value, usual, to, mostCount) != nil {
		return fmt.Errorf("it is %s, %s, or a whole number from 1 to %d", usual, Auto, mostCount)
	}
	return nil
}

func chosenOr(n int, usual string) string {
	if n == Asked {
		return Auto
	}
	return someOr(n, usual)
}

// whole sets a number from 1 on, whose default is stored as 0.
func whole(value string, to *int, usual int) error {
	if err := some(value, "", to, mostCount); err != nil {
		return err
	}
	if *to == usual {
		*to = 0
	}
	return nil
}

func setGradients(s *Settings, value string) error {
	var word string
	if err := choose(value, &word, dropped, kept); err != nil {
		return err
	}
	s.Pipe.KeepGradients = word == kept
	return nil
}

func setRecompute(s *Settings, value string) error {
	var word string
	if err := choose(value, &word, Auto, on, off); err != nil {
		return err
	}
	s.Pipe.Keep, s.Pipe.Again = word == off, word == on
	return nil
}

func setShare(s *Settings, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 100 {
		return errors.New("it is a whole number from 1 to 100, in percent")
	}
	return whole(value, &s.Pipe.Share, usualShare)
}
