package train

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func show() *cobra.Command {
	var d daemon.Flags
	var epochs bool
	cmd := &cobra.Command{
		Use:   "show JOB",
		Short: "Describe a job: its progress, accuracy, time and traffic",
		Long: "Describes a job as the asked node knows it. --epochs adds each epoch; --json always has them, and every\n" +
			"setting of the job. Times, rows and bytes are for training; those of evaluation are listed as EVAL. If\n" +
			"several nodes train the job, phases are averages over the nodes, and rows and bytes are totals. A kind of\n" +
			"bytes that was not sent has no column.\n\n" +
			"For a sweep, each model has a line with its best epoch. * marks the best model; the loss is that of this\n" +
			"model. Times, rows and bytes are those of all models. In --epochs, work that is done once for all models is\n" +
			"counted with the first.",
		Example:           "  hopmesh train show j1\n  hopmesh train show j1 --epochs\n  hopmesh train show j1 --json | jq .best.test_acc",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.Job, error) { return c.Job(ctx, args[0]) })
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if d.JSON {
				return output.JSON(w, j)
			}
			if err := printJob(w, j); err != nil || !epochs {
				return err
			}
			if len(j.Models) > 0 {
				return printModelEpochs(w, j)
			}
			return printAllEpochs(w, j, j.History)
		},
	}
	cmd.Flags().BoolVar(&epochs, "epochs", false, "list each epoch")
	d.Add(cmd)
	return cmd
}

// startOf says which model a job has started from.
func startOf(j api.Job) string {
	if j.From == "" {
		return ""
	}
	return ", from the model of " + j.From
}

func printJob(w io.Writer, j api.Job) error {
	rows := [][]string{
		{"Job", j.ID},
		{"State", j.State},
		{"Dataset", j.Dataset},
		{"Model", fmt.Sprintf("%s, seed %d", output.ModelName(j.Model, len(j.Models)), j.Seed) + startOf(j)},
		{"Strategy", output.StrategyUsed(j)},
		{"Why", output.LatestReason(j)},
		{"Nodes", strings.Join(nodesOf(j), ", ")},
		{"Generation", strconv.FormatUint(j.Generation, 10)},
		{"Epoch", output.Position(j)},
	}
	rows = append(rows, scheduleRows(j)...)
	if m := j.Memory; m != nil && m.Taken > 0 {
		text := output.Size(m.Taken) + " taken"
		if m.Forecast > 0 {
			text += ", " + output.Size(m.Forecast) + " forecast"
		}
		rows = append(rows, []string{"Memory", text})
	}
	if n := len(j.History); n > 0 {
		rows = append(rows, []string{"Loss", fmt.Sprintf("%.4f", j.History[n-1].Loss)})
	}
	if j.Best != nil {
		rows = append(rows, []string{"Best", fmt.Sprintf("epoch %d%s%s", j.Best.Epoch, output.BestModel(j), scores(j.Best, ", "))})
	}
	rows = append(rows, metricRows(j)...)
	if len(j.History) > 0 {
		if distributed(j) {
			rows = append(rows, sharedRows(j.History)...)
		} else {
			rows = append(rows, []string{"Time", epochTime(j.History)})
		}
		rows = append(rows, []string{"Weights", j.History[len(j.History)-1].Weights})
	}
	if err := output.Table(w, rows...); err != nil {
		return err
	}
	if err := printModels(w, j); err != nil {
		return err
	}
	messages := slices.Concat(j.Problems, diverged(j), j.Notes)
	if j.Error != "" {
		messages = append([]string{j.Error}, messages...)
	}
	for i, p := range messages {
		p = output.Sentence(p)
		if i == 0 {
			p = "\n" + p
		}
		if _, err := fmt.Fprintln(w, p); err != nil {
			return err
		}
	}
	return nil
}

// metricRows lists the metrics of the best epoch, if there are others than the accuracy.
func metricRows(j api.Job) (rows [][]string) {
	if j.Best == nil {
		return nil
	}
	label := "Metrics"
	for _, line := range output.Metrics(j.Best.Metrics) {
		rows = append(rows, []string{label, line})
		label = " "
	}
	return rows
}

// scheduleRows describes how the current epoch and those after it are shared.
func scheduleRows(j api.Job) (rows [][]string) {
	current := 0
	for i, e := range j.Schedule {
		if e.From <= max(1, j.Epoch) {
			current = i
		}
	}
	label := "Schedule"
	for _, e := range j.Schedule[min(current, len(j.Schedule)):] {
		text := fmt.Sprintf("%s from epoch %d on", e.Strategy, e.From)
		if e.How != "" {
			text += ": " + e.How
		}
		if e.Why != "" && e.Why != output.LatestReason(j) {
			text += " (" + e.Why + ")"
		}
		rows = append(rows, []string{label, text})
		label = "Then"
	}
	return rows
}

// nodesOf returns the job's nodes, with their devices if those are not the CPU.
func nodesOf(j api.Job) []string {
	list := slices.Clone(j.Nodes)
	for i := range list {
		if i < len(j.Devices) && j.Devices[i] != "cpu" && j.Devices[i] != "" {
			list[i] += " (" + j.Devices[i] + ")"
		}
	}
	return list
}

func printEpochs(w io.Writer, history []api.JobEpoch) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows := [][]string{{"EPOCH", "LOSS", "TRAIN", "VAL", "TEST", "SECONDS", "SAMPLE", "GATHER", "COMPUTE", "REDUCE", "WAIT", "EVAL", "ROWS", "WEIGHTS"}}
	for _, e := range history {
		eval := ""
		if e.Eval != nil {
			eval = output.Seconds(e.Eval.Seconds)
		}
		s := output.EpochScores(&e)
		rows = append(rows, []string{
			strconv.Itoa(e.Epoch), fmt.Sprintf("%.4f", e.Loss), s.Train, s.Val, s.Test,
			output.Seconds(e.Seconds), output.Seconds(e.Phases.Sample), output.Seconds(e.Phases.Gather), output.Seconds(e.Phases.Compute), output.Seconds(e.Phases.Reduce), output.Seconds(e.Phases.Wait), eval,
			output.Thousands(e.Rows.Total()), e.Weights[:min(12, len(e.Weights))],
		})
	}
	return output.Table(w, rows...)
}

// diverged returns messages of the models of a sweep that diverged.
func diverged(j api.Job) []string {
	var list []string
	for _, m := range j.Models {
		if m.Diverged != "" {
			list = append(list, m.Diverged)
		}
	}
	return list
}

// printModels lists the models of a sweep.
func printModels(w io.Writer, j api.Job) error {
	if len(j.Models) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	keys := map[string]bool{}
	for _, m := range j.Models {
		for key := range m.Params {
			keys[key] = true
		}
	}
	columns := slices.Sorted(maps.Keys(keys))
	head := []string{"MODEL"}
	for _, key := range columns {
		head = append(head, strings.ToUpper(key))
	}
	rows := [][]string{append(head, "EPOCHS", "BEST", "VAL", "TEST")}
	for i, m := range j.Models {
		row := []string{strconv.Itoa(i)}
		if j.Best != nil && j.Best.Model != nil && *j.Best.Model == i {
			row[0] += " *"
		}
		for _, key := range columns {
			row = append(row, m.Params[key])
		}
		best, val, test := "", "", ""
		if m.Best != nil {
			s := output.BestScores(m.Best)
			best, val, test = strconv.Itoa(m.Best.Epoch), s.Val, s.Test
		}
		rows = append(rows, append(row, strconv.Itoa(output.LastEpoch(m.History)), best, val, test))
	}
	return output.Table(w, rows...)
}

// printModelEpochs lists each epoch of each model of a sweep.
func printModelEpochs(w io.Writer, j api.Job) error {
	for i, m := range j.Models {
		if _, err := fmt.Fprintf(w, "\nModel %d, %s:\n", i, output.Cell(output.Params(m))); err != nil {
			return err
		}
		if err := printAllEpochs(w, j, m.History); err != nil {
			return err
		}
	}
	return nil
}

// printAllEpochs lists epochs, with traffic if the job is distributed.
func printAllEpochs(w io.Writer, j api.Job, history []api.JobEpoch) error {
	if distributed(j) {
		return printSharedEpochs(w, history)
	}
	return printEpochs(w, history)
}

// sharedRows returns the averages of an epoch of a distributed job: times, rows and bytes.
func sharedRows(history []api.JobEpoch) [][]string {
	var evaluating float64
	var rows api.JobRows
	var sent, evaluated api.JobBytes
	for _, e := range history {
		rows.Add(e.Rows)
		sent.Add(e.Bytes)
		if e.Eval != nil {
			evaluating += e.Eval.Seconds
			evaluated.Add(e.Eval.Bytes)
		}
	}
	n := len(history)
	seconds, spent := averageEpoch(history)
	var kinds []string
	for _, p := range output.ByteKinds() {
		if of := *p.Of(&sent); of > 0 {
			kinds = append(kinds, p.Name+" "+output.Bytes(of/uint64(n)))
		}
	}
	list := [][]string{
		{"Time", output.Seconds(seconds) + " an epoch"}, {" ", phases(spent)},
		{"Rows", fmt.Sprintf("%s local and %s remote an epoch", output.Thousands(rows.Local/uint64(n)), output.Thousands(rows.Remote/uint64(n)))},
		{"Kept", keptRows(history)},
		{"Sent", output.Bytes(sent.Total()/uint64(n)) + " an epoch"},
	}
	for some := range slices.Chunk(kinds, 4) {
		list = append(list, []string{" ", strings.Join(some, ", ")})
	}
	if evaluating > 0 {
		list = append(list, []string{"Evaluation", fmt.Sprintf("%s and %s an epoch", output.Seconds(evaluating/float64(n)), output.Bytes(evaluated.Total()/uint64(n)))})
	}
	return slices.DeleteFunc(list, func(row []string) bool { return row[1] == "" })
}

// keptRows says how many rows of other nodes an epoch needed that had come before, and about how many
// bytes they would have taken. "": none was kept. The epoch with the fewest bytes for a
// row says what one takes: others may have brought rows before they were needed.
func keptRows(history []api.JobEpoch) string {
	var kept uint64
	row := 0.0
	for _, e := range history {
		kept += e.Rows.Kept
		if e.Rows.Remote > 0 && e.Bytes.Feature > 0 {
			if of := float64(e.Bytes.Feature) / float64(e.Rows.Remote); row == 0 || of < row {
				row = of
			}
		}
	}
	if kept == 0 {
		return ""
	}
	kept /= uint64(len(history))
	text := output.Thousands(kept) + " rows an epoch did not travel again"
	if row > 0 {
		text += ", about " + output.Bytes(uint64(float64(kept)*row))
	}
	return text
}

// printSharedEpochs prints three tables that fit a terminal: accuracies and times, traffic, and
// columns of strategies.
func printSharedEpochs(w io.Writer, history []api.JobEpoch) error {
	for _, rows := range [][][]string{timeRows(history), trafficRows(history), sharingRows(history)} {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := output.Table(w, rows...); err != nil {
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
		if _, err := fmt.Fprintf(w, "From epoch %d on %s: %s\n", e.Epoch, output.Cell(e.Strategy), output.Sentence(why)); err != nil {
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
			eval = output.Seconds(e.Eval.Seconds)
		}
		s := output.EpochScores(&e)
		rows = append(rows, []string{
			strconv.Itoa(e.Epoch), fmt.Sprintf("%.4f", e.Loss), s.Train, s.Val, s.Test, output.Seconds(e.Seconds),
			output.Seconds(e.Phases.Sample), output.Seconds(e.Phases.Gather), output.Seconds(e.Phases.Compute), output.Seconds(e.Phases.Reduce), output.Seconds(e.Phases.Wait), eval,
		})
	}
	return rows
}

// trafficRows has no columns for kinds of bytes that were not sent.
func trafficRows(history []api.JobEpoch) [][]string {
	head := []string{"EPOCH", "LOCAL ROWS", "REMOTE"}
	keeps := slices.ContainsFunc(history, func(e api.JobEpoch) bool { return e.Rows.Kept > 0 })
	if keeps {
		head = append(head, "KEPT")
	}
	var columns []output.ByteKind
	for _, s := range output.ByteKinds() {
		for _, e := range history {
			if *s.Of(&e.Bytes) > 0 {
				columns = append(columns, s)
				head = append(head, s.Head)
				break
			}
		}
	}
	rows := [][]string{append(head, "EVAL")}
	for _, e := range history {
		row := []string{strconv.Itoa(e.Epoch), output.Thousands(e.Rows.Local), output.Thousands(e.Rows.Remote)}
		if keeps {
			row = append(row, output.Thousands(e.Rows.Kept))
		}
		for _, s := range columns {
			row = append(row, output.Bytes(*s.Of(&e.Bytes)))
		}
		eval := ""
		if e.Eval != nil {
			eval = output.Bytes(e.Eval.Bytes.Total())
		}
		rows = append(rows, append(row, eval))
	}
	return rows
}

// sharingRows has columns that only some strategies use, such as the slots of a step, the age
// of the weights, or the share of the edges that groups see.
func sharingRows(history []api.JobEpoch) [][]string {
	head := []string{"EPOCH", "STRATEGY"}
	var columns []func(e api.JobEpoch) string
	type column struct {
		head string
		of   func(e api.JobEpoch) string
	}
	all := []column{
		{"SLOTS", func(e api.JobEpoch) string { return positive(e.Slots) }},
		{"BEHIND", func(e api.JobEpoch) string { return positive(e.Behind) }},
		{"SUPER-EPOCH", func(e api.JobEpoch) string { return positive(e.Super) }},
		{"EDGES SEEN", func(e api.JobEpoch) string {
			if e.Super == 0 {
				return ""
			}
			return fmt.Sprintf("%.1f%%", 100*e.Seen)
		}},
	}
	named := map[string]bool{}
	for _, e := range history {
		for _, f := range e.Figures {
			if !named[f.Name] {
				named[f.Name] = true
				all = append(all, column{strings.ToUpper(f.Name), func(e api.JobEpoch) string { return figure(e, f.Name) }})
			}
		}
	}
	for _, c := range all {
		if slices.ContainsFunc(history, func(e api.JobEpoch) bool { return c.of(e) != "" }) {
			head, columns = append(head, c.head), append(columns, c.of)
		}
	}
	rows := [][]string{append(head, "ROW REQUESTS", "NEIGHBOUR REQUESTS", "GENERATION", "WEIGHTS")}
	for _, e := range history {
		row := []string{strconv.Itoa(e.Epoch), e.Strategy}
		for _, of := range columns {
			row = append(row, of(e))
		}
		rows = append(rows, append(row, output.Thousands(e.Requests.Feature), output.Thousands(e.Requests.Topology),
			strconv.FormatUint(e.Generation, 10), e.Weights[:min(12, len(e.Weights))]))
	}
	return rows
}

// figure returns a strategy's figure of an epoch, or "" if it has none of that name.
func figure(e api.JobEpoch, name string) string {
	for _, f := range e.Figures {
		if f.Name == name {
			return strconv.FormatFloat(f.Value, 'g', 6, 64)
		}
	}
	return ""
}

// positive returns a number as text, or "" for 0.
func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
