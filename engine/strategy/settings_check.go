package strategy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Check returns an error if settings contradict each other, whoever made them.
func (s *Settings) Check() error {
	l := &s.Leap
	switch {
	case s.Wire != "" && s.Wire != bf16:
		return fmt.Errorf("wire.features=%s: it is one of %s, %s", s.Wire, stored, bf16)
	case !slices.Contains([]string{"", Auto, replicated, sharded}, s.Topology):
		return fmt.Errorf("topology=%s: it is one of %s, %s, %s", s.Topology, Auto, replicated, sharded)
	case !slices.Contains([]string{"", Auto, stay, migrate}, l.Mode):
		return fmt.Errorf("leap.mode=%s: it is one of %s, %s, %s", l.Mode, Auto, stay, migrate)
	case s.Centric.Cache < 0 || s.Centric.Cache > mostCached:
		return fmt.Errorf("centric.cache=%d: it is a whole number of rows from 0 to %d", s.Centric.Cache, mostCached)
	case l.Cache < 0 || l.Cache > mostCached:
		return fmt.Errorf("leap.cache=%d: it is a whole number of rows from 0 to %d", l.Cache, mostCached)
	case l.SyncEvery < 0 || l.SyncEvery > mostCount:
		return fmt.Errorf("leap.sync_every=%d: it is a whole number from 1 to %d", l.SyncEvery, mostCount)
	case s.Local.Average < 0 || s.Local.Average > mostCount:
		return fmt.Errorf("local.average_every=%d: it is a whole number from 1 to %d", s.Local.Average, mostCount)
	case s.P3.Inflight < 0 || s.P3.Inflight > MostInflight:
		return fmt.Errorf("p3.inflight=%d: it is a whole number from 1 to %d", s.P3.Inflight, MostInflight)
	case !slices.Contains([]string{"", grain, sliced}, s.P3.Roots):
		return fmt.Errorf("p3.roots=%s: it is one of %s, %s", s.P3.Roots, grain, sliced)
	case !slices.Contains([]string{"", resample, blocks}, s.P3.Push):
		return fmt.Errorf("p3.push=%s: it is one of %s, %s", s.P3.Push, resample, blocks)
	}
	if Piped(s.Strategy) && s.Topology == sharded {
		return fmt.Errorf("topology=%s: with {strategy} %s each node knows all edges: leave it out, or take another {strategy}", sharded, s.Strategy)
	}
	if s.Strategy == Grappa && s.Topology == replicated {
		return fmt.Errorf("topology=%s: with {strategy} %s nodes bring the edges that their groups see, and no others: leave it out, or take another {strategy}", replicated, Grappa)
	}
	if err := checkMerge(l.Merge); err != nil {
		return fmt.Errorf("leap.merge=%s: %w", l.Merge, err)
	}
	if err := s.Grappa.check(); err != nil {
		return err
	}
	if err := s.Pipe.check(s.Strategy, s.Deterministic); err != nil {
		return err
	}
	switch {
	case l.SyncEvery > 1 && l.Mode == stay:
		return fmt.Errorf("leap.sync_every=%d: a model that stays and updates itself would learn from its own node's roots alone: choose leap.mode=%s, or leave one of the two out", l.SyncEvery, migrate)
	case s.Wire == bf16 && s.Deterministic:
		return fmt.Errorf("wire.features=%s rounds the rows that travel, so weights depend on who holds which, and {deterministic} promises that they don't: leave one of the two out", bf16)
	case l.SyncEvery > 1 && s.Deterministic:
		return fmt.Errorf("leap.sync_every=%d: models that update themselves are as many as nodes, so their weights depend on how many there are, and {deterministic} promises that they don't: leave one of the two out", l.SyncEvery)
	case l.SyncEvery > 1 && s.Strategy != Leap:
		return fmt.Errorf("leap.sync_every=%d: only models that tour update themselves between averages: choose {strategy} %s, or leave it out", l.SyncEvery, Leap)
	case l.Mode == stay && l.Merge != "" && l.Merge != Auto:
		return fmt.Errorf("leap.merge=%s: models that stay have no slots to merge: choose leap.mode=%s, or leave one of the two out", l.Merge, migrate)
	case s.P3.Pipelined() && s.Strategy != P3:
		return fmt.Errorf("p3.inflight=%d: only %s has several batches under way, on older weights: choose {strategy} %s, or leave it out", s.P3.Inflight, P3, P3)
	case s.Grappa != (GrappaSettings{}) && s.Strategy != Grappa:
		return fmt.Errorf("settings of grappa are for {strategy} %s, which is not exact, so that nothing else comes to it: choose that one, or leave them out", Grappa)
	case s.Grappa.Average > 1 && s.Deterministic:
		return fmt.Errorf("grappa.average_every=%d: models that update themselves are as many as nodes, so their weights depend on how many there are, and {deterministic} promises that they don't: leave one of the two out", s.Grappa.Average)
	}
	return nil
}

// CheckUse returns an error if a setting has no effect with the requested strategy.
// auto may choose any strategy that trains on batches, so all of their settings have an
// effect with it.
func (s *Settings) CheckUse(asked string) error {
	if asked == "" || asked == Auto {
		for _, k := range slices.Concat(grappaKeys, pipeKeys, localKeys) {
			if value := k.get(s); value != k.Default {
				return fmt.Errorf("{%s}=%s is for {strategy} %s, which %s never chooses: leave it out, or name the strategy", k.Key.Key, value, strings.ReplaceAll(k.Applies, ", ", " or "), Auto)
			}
		}
		return nil
	}
	for _, k := range keys {
		value := k.get(s)
		switch {
		case value == k.Default || k.appliesTo(asked):
		case k.Applies == everyStrategy && asked == Single:
			return fmt.Errorf("{%s}=%s is for nodes that share a job, and {strategy} %s has one do it all: leave one of the two out", k.Key.Key, value, asked)
		case k.appliesTo(Pipe), k.appliesTo(Grappa), k.appliesTo(Local):
			return fmt.Errorf("{%s}=%s is for {strategy} %s, and this job's is %s: leave it out, or choose another", k.Key.Key, value, strings.ReplaceAll(k.Applies, ", ", " or "), asked)
		case k.Applies != everyStrategy:
			return fmt.Errorf("{%s}=%s is for {strategy} %s, and this job's is %s: leave it out, or choose that one or %s", k.Key.Key, value, k.Applies, asked, Auto)
		}
	}
	return nil
}

// CheckSweep returns an error if a job with these settings can't train a sweep; asked
// is the requested strategy.
func (s *Settings) CheckSweep(asked string) error {
	if asked == Pipe || asked == Graph {
		return fmt.Errorf("{sweep}: the strategy %s keeps rows of all layers for one model only: take another {strategy}, or start one job for each model", asked)
	}
	if asked == P3 {
		return fmt.Errorf("{sweep}: the strategy %s adds up the first layer of one model only: take another {strategy}, or start one job for each model", P3)
	}
	for _, k := range keys {
		if value := k.get(s); (k.Applies == P3 || k.appliesTo(Pipe)) && value != k.Default {
			return fmt.Errorf("{%s}=%s is for {strategy} %s, which trains no sweeps: leave it out, or start one job for each model", k.Key.Key, value, strings.ReplaceAll(k.Applies, ", ", " or "))
		}
	}
	return nil
}

// CheckNodes returns an error if a job with these settings can't begin on so many
// nodes. A job that loses nodes later goes on with the rest.
func (s *Settings) CheckNodes(nodes int) error {
	if err := s.Pipe.checkNodes(s.Strategy, nodes); err != nil {
		return err
	}
	if g := &s.Grappa; s.Strategy == Grappa && g.Average > 1 && g.GroupsOf(nodes) < nodes {
		return fmt.Errorf("grappa.average_every=%d: each node has a model, and there are groups for %d of %d nodes only: choose {grappa.groups}=%d or more, or leave it out", g.Average, g.GroupsOf(nodes), nodes, nodes)
	}
	slots, err := strconv.Atoi(s.Leap.Merge)
	if err == nil && slots > nodes {
		return fmt.Errorf("leap.merge=%d: on %d nodes a step has at most %d slots, one for each model: choose 1 to %d, %s or %s", slots, nodes, nodes, nodes, Auto, off)
	}
	return nil
}

// CheckShards returns an error if a job with these settings can't begin on a dataset of
// so many shards.
func (s *Settings) CheckShards(shards int) error {
	switch {
	case s.Strategy == Grappa:
		return s.Grappa.CheckShards(shards)
	case Piped(s.Strategy):
		return s.Pipe.checkShards(shards)
	}
	return nil
}
