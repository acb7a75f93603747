package control

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// outlook explains what keeps the jobs of a plan from running.
type outlook struct {
	s       *plan.State
	aside   *plan.State // see aside
	answers func(id string) bool
}

// inLine reports whether a job waits only for other jobs to end.
func (o outlook) inLine(j plan.Job) bool {
	j, w, _ := o.wait(j)
	return w.Behind != "" && (!j.Shared() || len(w.Unserved)+len(w.Silent) == 0 && w.Keeper == "")
}

// wait returns why a job waits, if it does, with the job as package plan sees it then.
func (o outlook) wait(j plan.Job) (plan.Job, plan.Wait, bool) {
	_, waits := plan.NextJobs(o.aside, o.answers)
	w, waiting := waits[j.ID]
	if of, in := o.aside.Jobs[j.ID]; in {
		j = of
	}
	return j, w, waiting
}

// problem returns a sentence about what keeps a job from going on, or "".
func (o outlook) problem(j plan.Job) string {
	switch {
	case j.State == plan.Running && len(j.Nodes) > 1:
		return o.sharedProblem(j)
	case j.Stopping && !o.answers(j.Nodes[0]):
		return fmt.Sprintf("job %s is to stop, and does when node %s, which runs it, answers again", j.ID, o.s.NameOf(j.Nodes[0]))
	case j.State == plan.Running && !o.answers(j.Nodes[0]) && lone(o.s, j) != "":
		return fmt.Sprintf("node %s, which runs job %s, does not answer: in a few seconds another node that holds every shard begins it anew, or all nodes that hold the shards together do; if a shard is missing, start %s again, and the job goes on from its last checkpoint", o.s.NameOf(j.Nodes[0]), j.ID, o.s.NameOf(j.Nodes[0]))
	case j.State == plan.Running && !o.answers(j.Nodes[0]):
		return fmt.Sprintf("node %s, which runs job %s, does not answer: start it again, and the job goes on from its last checkpoint", o.s.NameOf(j.Nodes[0]), j.ID)
	case j.State != plan.Queued:
		return ""
	}
	j, w, waiting := o.wait(j)
	switch {
	case !waiting && !j.Shared():
		return "" // the leader is about to begin it
	case j.Shared():
		return o.sharedWait(j, w)
	}
	away := ""
	if len(w.Silent) > 0 {
		away = o.s.NameOf(w.Silent[0])
	}
	switch {
	case len(w.Holders) == 0:
		return fmt.Sprintf("job %s waits: %s", j.ID, scattered(o.s, o.s.Datasets[j.Dataset]))
	case w.Behind != "":
		return fmt.Sprintf("job %s waits until job %s has ended", j.ID, w.Behind)
	case len(w.Unlike) > 0:
		return unlike(o.s, j, w.Unlike)
	case w.Keeper != "":
		return fmt.Sprintf("job %s waits for node %s, which has what it has learnt so far and does not answer or is leaving: start that node again", j.ID, o.s.NameOf(w.Keeper))
	}
	return fmt.Sprintf("job %s waits for node %s, which holds every shard of dataset %s and does not answer or is leaving: start that node again", j.ID, away, j.DatasetName)
}

// sharedProblem is problem for a running job that several nodes share.
func (o outlook) sharedProblem(j plan.Job) string {
	silent := slices.DeleteFunc(slices.Clone(j.Nodes), o.answers)
	if len(silent) == 0 {
		return ""
	}
	of := forms(len(silent))
	return fmt.Sprintf("%s, which %s job %s, %s not answer: the others go on from the last step in a few seconds, if they hold copies of %s shards; else start %s again",
		o.s.NodesNamed(silent), of("shares", "share"), j.ID, of("does", "do"), of("its", "their"), of("it", "them"))
}

// sharedWait explains why a shared job has not begun, or waits again.
func (o outlook) sharedWait(j plan.Job, w plan.Wait) string {
	d := o.s.Datasets[j.Dataset]
	if why := unlike(o.s, j, d.Owners()); why != "" && len(w.Unserved)+len(w.Silent) == 0 {
		return why
	}
	switch {
	case len(w.Unserved) > 0 && len(w.Last) == 0:
		return fmt.Sprintf("job %s waits: no node holds shard %d of dataset %s: start the node again that did, or import the dataset anew", j.ID, w.Unserved[0], j.DatasetName)
	case len(w.Unserved) > 0:
		of, more, outlived := forms(len(w.Last)), min(max(d.Replicas+1, len(w.Last)), plan.MaxReplicas), "a node"
		if more > 1 {
			outlived = fmt.Sprintf("%d nodes", more)
		}
		return fmt.Sprintf("job %s waits for %s, which alone %s %d of the %d shards of dataset %s and %s not answer: start %s again, and the job goes on; imported with --replicas %d, a dataset outlives %s",
			j.ID, o.s.NodesNamed(w.Last), of("holds", "hold"), len(w.Unserved), len(d.Shards), j.DatasetName, of("does", "do"), of("it", "them"), more, outlived)
	case w.Keeper != "" && !o.answers(w.Keeper):
		return fmt.Sprintf("job %s waits for node %s, which has what it has learnt so far and does not answer: start that node again", j.ID, o.s.NameOf(w.Keeper))
	case w.Keeper != "":
		return fmt.Sprintf("job %s waits until node %s, which has what it has learnt so far, holds shards of dataset %s again", j.ID, o.s.NameOf(w.Keeper), j.DatasetName)
	case w.Behind != "":
		return fmt.Sprintf("job %s waits until job %s has ended", j.ID, w.Behind)
	case len(w.Leaving) > 0:
		return fmt.Sprintf("job %s waits until others have taken over what %s, which %s leaving, %s of dataset %s",
			j.ID, o.s.NodesNamed(w.Leaving), forms(len(w.Leaving))("is", "are"), forms(len(w.Leaving))("holds", "hold"), j.DatasetName)
	case len(w.Silent) > 0:
		return fmt.Sprintf("job %s waits until others have taken over from %s, which %s not answer", j.ID, o.s.NodesNamed(w.Silent), forms(len(w.Silent))("does", "do"))
	}
	return "" // the leader is about to begin it
}

// forms chooses between singular and plural.
func forms(nodes int) func(one, more string) string {
	return func(one, more string) string {
		if nodes == 1 {
			return one
		}
		return more
	}
}
