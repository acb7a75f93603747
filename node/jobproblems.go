package node

import (
	"fmt"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// inLine says whether a job waits for nothing but its turn.
func (m *member) inLine(s *plan.State, j plan.Job) bool {
	_, waits := plan.NextJobs(s, m.answers)
	return waits[j.ID].Behind != ""
}

// jobProblem says in a sentence what keeps a job from going on, if anything does.
func (m *member) jobProblem(s *plan.State, j plan.Job) string {
	switch {
	case j.Stopping && !m.answers(j.Nodes[0]):
		return fmt.Sprintf("job %s is to stop, and does when node %s, which runs it, answers again", j.ID, nameOf(s, j.Nodes[0]))
	case j.State == plan.Running && !m.answers(j.Nodes[0]):
		return fmt.Sprintf("node %s, which runs job %s, does not answer: start it again, and the job goes on from its last checkpoint", nameOf(s, j.Nodes[0]), j.ID)
	case j.State != plan.Queued:
		return ""
	}
	_, waits := plan.NextJobs(s, m.answers)
	w, waiting := waits[j.ID]
	away := ""
	if len(w.Silent) > 0 {
		away = nameOf(s, w.Silent[0])
	}
	switch {
	case !waiting:
		return "" // the leader is about to begin it
	case len(w.Holders) == 0:
		return fmt.Sprintf("job %s waits: %s", j.ID, scattered(s, s.Datasets[j.Dataset]))
	case w.Behind != "":
		return fmt.Sprintf("job %s waits until job %s has ended", j.ID, w.Behind)
	case w.Keeper != "":
		return fmt.Sprintf("job %s waits for node %s, which has what it has learnt so far and does not answer or is leaving: start that node again", j.ID, nameOf(s, w.Keeper))
	}
	return fmt.Sprintf("job %s waits for node %s, which holds every shard of dataset %s and does not answer or is leaving: start that node again", j.ID, away, j.DatasetName)
}
