package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
)

// This file shows what is told of epochs whose work several nodes shared.

// shared says whether several nodes run a job, or did.
func shared(j api.Job) bool {
	return len(j.Nodes) > 1 || slices.ContainsFunc(j.History, remote)
}

// remote says whether nodes needed each other in an epoch.
func remote(e api.JobEpoch) bool { return e.Rows.Remote > 0 || total(e.Bytes) > 0 }

// A purpose is what bytes were sent for.
type purpose struct {
	head, name string
	of         func(*api.JobBytes) *uint64
}

func purposes() []purpose {
	return []purpose{
		{"FEATURE", "features", func(b *api.JobBytes) *uint64 { return &b.Feature }},
		{"TOPOLOGY", "topology", func(b *api.JobBytes) *uint64 { return &b.Topology }},
		{"MODEL", "models", func(b *api.JobBytes) *uint64 { return &b.Model }},
		{"GRADIENT", "gradients", func(b *api.JobBytes) *uint64 { return &b.Gradient }},
		{"ACTIVATION", "activations", func(b *api.JobBytes) *uint64 { return &b.Activation }},
		{"SHARD", "shards", func(b *api.JobBytes) *uint64 { return &b.Shard }},
		{"CONTROL", "control", func(b *api.JobBytes) *uint64 { return &b.Control }},
	}
}

func total(b api.JobBytes) uint64 {
	sum := uint64(0)
	for _, p := range purposes() {
		sum += *p.of(&b)
	}
	return sum
}

// bytesSent counts those of several epochs, for training.
func bytesSent(history []api.JobEpoch) uint64 {
	sum := uint64(0)
	for _, e := range history {
		sum += total(e.Bytes)
	}
	return sum
}

// size is formatSize for what may well be nothing.
func size(n uint64) string {
	if n == 0 {
		return "0 B"
	}
	return formatSize(n)
}

// strategyOf adds what auto has come to.
func strategyOf(j api.Job) string {
	if n := len(j.History); n > 0 && j.History[n-1].Strategy != "" && j.History[n-1].Strategy != j.Strategy {
		return fmt.Sprintf("%s, which was %s in epoch %d", j.Strategy, j.History[n-1].Strategy, j.History[n-1].Epoch)
	}
	return j.Strategy
}

// whyOf is the latest that is known of the reasons: those of an earlier generation were
// other nodes'.
func whyOf(j api.Job) string {
	for _, e := range slices.Backward(j.History) {
		if e.Why != "" && e.Generation >= j.Generation {
			return e.Why
		}
	}
	return j.Why
}

// sharedRows say what an epoch takes on average, in lines that people read: how long,
// which rows, what is sent.
func sharedRows(history []api.JobEpoch) [][]string {
	var evaluating float64
	var rows api.JobRows
	var sent, judged api.JobBytes
	for _, e := range history {
		rows.Local += e.Rows.Local
		rows.Remote += e.Rows.Remote
		sent = plus(sent, e.Bytes)
		if e.Eval != nil {
			evaluating += e.Eval.Seconds
			judged = plus(judged, e.Eval.Bytes)
		}
	}
	n := len(history)
	seconds, spent := average(history)
	var kinds []string
	for _, p := range purposes() {
		if of := *p.of(&sent); of > 0 {
			kinds = append(kinds, p.name+" "+size(of/uint64(n)))
		}
	}
	list := [][]string{
		{"Time", brief(seconds) + " an epoch"}, {" ", phases(spent)},
		{"Rows", fmt.Sprintf("%s local and %s remote an epoch", thousands(rows.Local/uint64(n)), thousands(rows.Remote/uint64(n)))},
		{"Sent", size(total(sent)/uint64(n)) + " an epoch"},
	}
	for some := range slices.Chunk(kinds, 4) {
		list = append(list, []string{" ", strings.Join(some, ", ")})
	}
	if evaluating > 0 {
		list = append(list, []string{"Evaluation", fmt.Sprintf("%s and %s an epoch", brief(evaluating/float64(n)), size(total(judged)/uint64(n)))})
	}
	return slices.DeleteFunc(list, func(row []string) bool { return row[1] == "" })
}

func plus(a, b api.JobBytes) api.JobBytes {
	for _, p := range purposes() {
		*p.of(&a) += *p.of(&b)
	}
	return a
}

// printSharedEpochs prints three tables, each of a width that people read: how good
// and how long, what was sent, and how the work was shared.
func printSharedEpochs(w io.Writer, history []api.JobEpoch) error {
	for _, rows := range [][][]string{timeRows(history), trafficRows(history), sharingRows(history)} {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := table(w, rows...); err != nil {
			return err
		}
	}
	why := ""
	for _, e := range history {
		if e.Why == "" || e.Why == why {
			continue
		}
		if why == "" {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		why = e.Why
		if _, err := fmt.Fprintf(w, "From epoch %d on %s: %s\n", e.Epoch, cell(e.Strategy), sentence(why)); err != nil {
			return err
		}
	}
	return nil
}

func timeRows(history []api.JobEpoch) [][]string {
	rows := [][]string{{"EPOCH", "LOSS", "TRAIN", "VAL", "TEST", "SECONDS", "SAMPLE", "GATHER", "COMPUTE", "REDUCE", "WAIT", "EVAL"}}
	for _, e := range history {
		eval := ""
		if e.Eval != nil {
			eval = brief(e.Eval.Seconds)
		}
		rows = append(rows, []string{
			strconv.Itoa(e.Epoch), fmt.Sprintf("%.4f", e.Loss), share(e.TrainAccuracy), share(e.ValAccuracy), share(e.TestAccuracy), brief(e.Seconds),
			brief(e.Phases.Sample), brief(e.Phases.Gather), brief(e.Phases.Compute), brief(e.Phases.Reduce), brief(e.Phases.Wait), eval,
		})
	}
	return rows
}

// trafficRows has no column for what nobody sent.
func trafficRows(history []api.JobEpoch) [][]string {
	head := []string{"EPOCH", "LOCAL ROWS", "REMOTE"}
	var columns []purpose
	for _, s := range purposes() {
		for _, e := range history {
			if *s.of(&e.Bytes) > 0 {
				columns = append(columns, s)
				head = append(head, s.head)
				break
			}
		}
	}
	rows := [][]string{append(head, "EVAL")}
	for _, e := range history {
		row := []string{strconv.Itoa(e.Epoch), thousands(e.Rows.Local), thousands(e.Rows.Remote)}
		for _, s := range columns {
			row = append(row, size(*s.of(&e.Bytes)))
		}
		eval := ""
		if e.Eval != nil {
			eval = size(total(e.Eval.Bytes))
		}
		rows = append(rows, append(row, eval))
	}
	return rows
}

// sharingRows has no column for what the strategies did not do: models that travel,
// weights that are behind, or groups that see a part of the graph.
func sharingRows(history []api.JobEpoch) [][]string {
	head := []string{"EPOCH", "STRATEGY"}
	var columns []func(e api.JobEpoch) string
	for _, c := range []struct {
		head string
		of   func(e api.JobEpoch) string
	}{
		{"SLOTS", func(e api.JobEpoch) string { return positive(e.Slots) }},
		{"BEHIND", func(e api.JobEpoch) string { return positive(e.Behind) }},
		{"SUPER-EPOCH", func(e api.JobEpoch) string { return positive(e.Super) }},
		{"EDGES SEEN", func(e api.JobEpoch) string {
			if e.Super == 0 {
				return ""
			}
			return fmt.Sprintf("%.1f%%", 100*e.Seen)
		}},
	} {
		if slices.ContainsFunc(history, func(e api.JobEpoch) bool { return c.of(e) != "" }) {
			head, columns = append(head, c.head), append(columns, c.of)
		}
	}
	rows := [][]string{append(head, "ASKED FOR ROWS", "FOR NEIGHBOURS", "GENERATION", "WEIGHTS")}
	for _, e := range history {
		row := []string{strconv.Itoa(e.Epoch), e.Strategy}
		for _, of := range columns {
			row = append(row, of(e))
		}
		rows = append(rows, append(row, thousands(e.Requests.Feature), thousands(e.Requests.Topology),
			strconv.FormatUint(e.Generation, 10), e.Weights[:min(12, len(e.Weights))]))
	}
	return rows
}

// positive is a number, or nothing in place of 0.
func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// listed names a few nodes, or says how many there are.
func listed(nodes []string) string {
	switch n := len(nodes); {
	case n > 5:
		return fmt.Sprintf("%d nodes", n)
	case n > 1:
		return strings.Join(nodes[:n-1], ", ") + " and " + nodes[n-1]
	}
	return nodes[0]
}
