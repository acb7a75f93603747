package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func watch() *cobra.Command {
	var d daemon.Flags
	cmd := &cobra.Command{
		Use:   "watch JOB",
		Short: "Watch a job until it ends",
		Long: "Shows the progress of a job until it ends, and then its result. An interrupt does not stop the job. The\n" +
			"exit code is 1 if the job failed. --json prints nothing before the end, and then the document of\n" +
			"`hopmesh train show`.",
		Example:           "  hopmesh train watch j1",
		Args:              usage.OneArg("JOB"),
		ValidArgsFunction: daemon.Suggest(&d, JobIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return watchJob(cmd, &d, args[0], d.JSON) },
	}
	d.Add(cmd)
	return cmd
}

// watchJob shows the progress of a job until it ends. If show is set it then prints the job as
// JSON.
func watchJob(cmd *cobra.Command, d *daemon.Flags, id string, show bool) error {
	v := newView(cmd.ErrOrStderr(), d.JSON)
	j, err := daemon.Ask(cmd, d, func(ctx context.Context, c *api.Client) (api.Job, error) { return c.WatchJob(ctx, id, v.show) })
	v.live.Clear()
	if cmd.Context().Err() != nil && j.ID == "" {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "Job %s continues: watch it again with `hopmesh train watch %s`, or stop it with `hopmesh train stop %s`.\n", output.Cell(id), output.Cell(id), output.Cell(id))
		return err
	}
	if err != nil {
		return err
	}
	if show {
		err = output.JSON(cmd.OutOrStdout(), j)
	} else if !d.JSON {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), outcome(j))
	}
	if err == nil && j.State == "failed" {
		if d.JSON {
			return usage.ErrPrinted
		}
		return errors.New(output.Cell(j.Error))
	}
	return err
}

// outcome returns a sentence about the end of a job.
func outcome(j api.Job) string {
	verb := "is"
	if j.State == "failed" {
		verb = "has"
	}
	text := fmt.Sprintf("Job %s %s %s after epoch %d of %d", output.Cell(j.ID), verb, output.Cell(j.State), j.Epoch, j.EpochsTotal)
	if j.Best != nil {
		verb := "best in"
		if output.BestScores(j.Best).Val == "" {
			verb = "kept is"
		}
		text += fmt.Sprintf(": %s epoch %d%s%s", verb, j.Best.Epoch, output.BestModel(j), scores(j.Best, " and "))
	}
	if last := j.History[max(0, len(j.History)-100):]; len(last) > 0 {
		text += ", " + epochTime(last)
		if distributed(j) {
			text += ", " + output.Bytes(bytesSent(last)/uint64(len(last))) + " sent an epoch"
		}
	}
	return text + "."
}

// view shows on stderr how far a job is: a bar on a terminal, or else a line every few
// seconds.
type view struct {
	live  *output.Live
	quiet bool // --json: notes only

	state api.JobSummary
	epoch *api.JobEpoch // the latest
	val   string        // the latest score on validation
	here  api.JobProgress
}

func newView(w io.Writer, quiet bool) *view {
	return &view{live: output.NewLive(w), quiet: quiet}
}

// show shows one event.
func (v *view) show(e api.JobEvent) {
	switch {
	case e.Note != "":
		v.live.Line(output.Sentence(e.Note))
	case v.quiet:
	case e.State != nil:
		v.state = *e.State
		v.begin()
	case e.Progress != nil:
		v.here = *e.Progress
		v.update(false)
	case e.Epoch != nil:
		v.epoch = e.Epoch
		v.val = cmp.Or(output.EpochScores(e.Epoch).Val, v.val)
		v.update(true)
	}
}

// begin prints a line when a job is queued or begins to run.
func (v *view) begin() {
	s := v.state
	switch s.State {
	case "queued":
		v.live.Line(fmt.Sprintf("Job %s is queued.", output.Cell(s.ID)))
	case "running":
		where := ""
		if len(s.Nodes) > 0 {
			where = " on " + output.Cell(output.NodeList(s.Nodes))
		}
		v.live.Line(fmt.Sprintf("Job %s trains %s on %s%s, %s.", output.Cell(s.ID), output.Cell(output.ModelName(s.Model, s.Models)), output.Cell(s.Dataset), where, output.Plural(s.EpochsTotal, "epoch", "epochs")))
	}
}

// update draws the bar, or prints a line if one is due. Lines are printed at the end of
// an epoch; within epochs only if those take long. The epochs of distributed jobs have
// lines above the bar, too, which has no room for their phases and bytes.
func (v *view) update(epochEnded bool) {
	total := v.state.EpochsTotal
	done := v.state.Epoch
	if v.epoch != nil {
		done = v.epoch.Epoch
	}
	details := ""
	if epochEnded {
		details = v.details()
	}
	due := v.live.Due() && (epochEnded || v.epoch == nil || v.epoch.Seconds >= longEpoch.Seconds())
	if due && (!v.live.Terminal || details != "") {
		v.live.Begin()
		v.live.Line(v.status(done, total) + details)
	}
	if v.live.Terminal {
		at := float64(done)
		if h := v.here; h.Epoch > done && h.Steps > 0 {
			at += float64(min(h.Step, h.Steps)) / float64(h.Steps)
		}
		text := v.status(done, total)
		if left := float64(total) - at; v.epoch != nil && left > 0 {
			text += fmt.Sprintf(", about %s left", output.Duration(time.Duration(min(left*v.epoch.Seconds*float64(time.Second), 1<<62))))
		}
		v.live.Bar(at/float64(max(total, 1)), text)
	}
}

// longEpoch is the length of epochs from which on their steps have lines, too.
const longEpoch = 5 * time.Second

// status returns how far the job is and how good its model is.
func (v *view) status(done, total int) string {
	text := fmt.Sprintf("epoch %d of %d", done, total)
	if v.here.Epoch > done && v.here.Steps > 1 {
		text += fmt.Sprintf(", step %d of %d of the next", v.here.Step, v.here.Steps)
	}
	if v.epoch != nil {
		if v.state.Models > 0 {
			text += fmt.Sprintf(", model %d ahead", v.epoch.Model)
		}
		text += fmt.Sprintf(": loss %.4f", v.epoch.Loss)
		if v.val != "" {
			text += ", validation " + v.val
		}
		text += ", " + output.Seconds(v.epoch.Seconds) + " an epoch"
	}
	return text
}

// details returns the phases and bytes of the latest epoch if several nodes trained it.
func (v *view) details() string {
	if len(v.state.Nodes) < 2 && !usedNetwork(*v.epoch) {
		return ""
	}
	text := ""
	if parts := phases(v.epoch.Phases); parts != "" {
		text = " (" + parts + ")"
	}
	return text + ", " + output.Bytes(v.epoch.Bytes.Total()) + " sent"
}
