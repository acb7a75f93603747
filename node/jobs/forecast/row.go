package forecast

import (
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/wording"
)

// rowOf returns a row as users see it.
func rowOf(r *forecast.Row) api.ForecastRow {
	row := api.ForecastRow{
		Strategy: r.Strategy, Nodes: r.Nodes, Steps: r.Steps, Memory: r.Memory, Sharded: r.Sharded, Seconds: r.Seconds, Fits: r.Fits, Why: wording.Text(r.Why),
		Parts: api.ForecastParts(r.Parts), Exact: r.Exact,
	}
	_, row.Bytes = r.Bytes.Record()
	_, row.Once = r.Once.Record()
	return row
}

// choose marks, of the rows on as many nodes that fit and compute what one machine does,
// the fastest.
func choose(rows []api.ForecastRow) {
	best := map[int]int{}
	for i := range rows {
		r := &rows[i]
		if at, is := best[r.Nodes]; r.Fits && r.Exact && (!is || r.Seconds < rows[at].Seconds) {
			best[r.Nodes] = i
		}
	}
	for _, i := range best {
		rows[i].Best = true
	}
}

// assumptions returns what a forecast rests on, in sentences.
func assumptions(r *api.ForecastRequest, rates forecast.Rates, s *subject, strategies []forecast.Strategy) []string {
	all := []string{
		fmt.Sprintf("every node is a machine like this one, and gets %.3g MB a second from the others, with %.3g ms for the smallest question; of a link's rate %.0f %% is what nodes send each other, and the rest is what packets need", rates.Bandwidth/1e6, rates.RoundTrip*1e3, 100*payload),
		fmt.Sprintf("sending and receiving keep %.2g processors busy: %.3g ns a byte and %.3g us a question at both ends together, as measured between two nodes here", rates.Cores, rates.Byte*1e9, rates.Question*1e6),
		fmt.Sprintf("copies of each shard beside the owner's: %d", s.replicas),
		"an epoch without its evaluation, in which every row of other nodes comes over the network: from the second epoch on, centric, leap and local bring only those that memory had no room to keep; what nodes learn of each other's shards when they meet is left out",
		"nobody else uses the machines, and no step waits for a node that is slower than the others",
	}
	if rates.Bandwidth < payload*r.Bandwidth {
		all = append(all, fmt.Sprintf("this machine's processors move %.3g MB a second both ways at once, which is less than the link gives, and bounds it", rates.Bandwidth/1e6))
	}
	if shape := s.shape; shape != nil {
		all = append(all,
			fmt.Sprintf("vertices, edges, features, classes and training vertices are those of %s (%s); its edges are made up: degrees are log-normal, and %.0f %% of the edges stay in communities of %d vertices, which decides how well it can be cut", shape.Name, shape.Source, 100*forecast.Inside, forecast.Community),
			"features are dense, and their numbers have four bytes")
	}
	shards := len(s.Graph.Sizes)
	for _, n := range r.Nodes {
		if n > shards {
			all = append(all, fmt.Sprintf("on more nodes than the dataset has shards (%d) it is forecast as if it had been cut into as many, without copies", shards))
			break
		}
	}
	if r.Job.Deterministic || len(r.Job.Set) > 0 {
		all = append(all, "models that travel and the partial sums of a deterministic job of p3 are not counted")
	}
	var whole, isolated []string
	for i := range strategies {
		switch of := &strategies[i]; {
		case of.Whole != nil:
			whole = append(whole, of.Name)
		case of.Sight != nil:
			isolated = append(isolated, of.Name)
		}
	}
	if len(whole) > 0 {
		all = append(all, strings.Join(whole, " and ")+": an epoch is one update from all vertices, without batches or sampled neighbours; each epoch has its share of what is sent once in several, and rows that travel are taken to be waited for")
	}
	if len(isolated) > 0 {
		all = append(all, strings.Join(isolated, " and ")+": as many groups as nodes, unless memory or the settings want more; each epoch has its share of what is brought for several")
	}
	return all
}
