package train

import (
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/node/api"
)

// distributed reports whether several nodes train a job, or did.
func distributed(j api.Job) bool {
	return len(j.Nodes) > 1 || slices.ContainsFunc(j.History, usedNetwork)
}

// usedNetwork reports whether nodes exchanged rows or bytes in an epoch.
func usedNetwork(e api.JobEpoch) bool { return e.Rows.Remote > 0 || e.Bytes.Total() > 0 }

// scores returns the scores of the epoch whose model is kept, for the parts of the split that have
// vertices.
func scores(b *api.JobBest, and string) string {
	text, s := "", output.BestScores(b)
	if s.Val == "" {
		text = ", the last"
	}
	var list []string
	if s.Val != "" {
		list = append(list, s.Val+" on validation")
	}
	if s.Test != "" {
		list = append(list, s.Test+" on test")
	}
	if len(list) == 0 {
		return text
	}
	return text + ", " + strings.Join(list, and)
}

// averageEpoch returns the average times of at least one epoch.
func averageEpoch(history []api.JobEpoch) (seconds float64, of api.JobPhases) {
	n := float64(len(history))
	for _, e := range history {
		seconds += e.Seconds / n
		of.AddShare(e.Phases, 1/n)
	}
	return seconds, of
}

// phases lists the phases that took any time.
func phases(of api.JobPhases) string {
	var parts []string
	for _, p := range []struct {
		name    string
		seconds float64
	}{{"sampling", of.Sample}, {"gathering", of.Gather}, {"computing", of.Compute}, {"reducing", of.Reduce}, {"waiting", of.Wait}} {
		if p.seconds >= 1e-6 {
			parts = append(parts, p.name+" "+output.Seconds(p.seconds))
		}
	}
	return strings.Join(parts, ", ")
}

// epochTime returns the average time of an epoch, its phases, and the time of evaluations.
func epochTime(history []api.JobEpoch) string {
	seconds, of := averageEpoch(history)
	text := output.Seconds(seconds) + " an epoch"
	if parts := phases(of); parts != "" {
		text += " (" + parts + ")"
	}
	evaluating := 0.0
	for _, e := range history {
		if e.Eval != nil {
			evaluating += e.Eval.Seconds
		}
	}
	if evaluating > 0 {
		text += ", evaluations " + output.Seconds(evaluating/float64(len(history)))
	}
	return text
}

// bytesSent returns the bytes that training sent in several epochs.
func bytesSent(history []api.JobEpoch) uint64 {
	sum := uint64(0)
	for _, e := range history {
		sum += e.Bytes.Total()
	}
	return sum
}
