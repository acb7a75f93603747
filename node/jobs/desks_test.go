package jobs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/desk"
)

// A program may come by a newer plan than the runner has adopted. It hears of its job's end only from
// plans that know as much.
func TestOldPlansEndNoDesk(t *testing.T) {
	inTime(t, func(t *testing.T, w *world) {
		w.teach(lessons(1000, time.Second))
		synctest.Wait() // it has caught up
		late := func(is bool) {
			w.set(func() { w.late = is })
			if is {
				nudge(w.runner.wake)
			} else {
				w.runner.Adopt(w.now())
			}
			synctest.Wait() // a round is over
		}
		w.set(func() { w.late = true })
		id := w.create(1000)
		at := w.runner.Desk(id, w.now().Index)
		program, err := at.Attach()
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan desk.Answer, 1)
		ask := func() {
			a, _ := program.Ask(desk.Question{Type: desk.Hello})
			answers <- a
		}
		goesOn := func(what string) {
			t.Helper()
			select {
			case a := <-answers:
				t.Errorf("a job that %s: %+v", what, a.Body)
				go ask()
			default:
			}
		}
		go ask()
		late(true)
		goesOn("was just created")
		w.apply(plan.FinishJob{ID: id, Node: "a", Generation: w.job(id).Generation, State: plan.Stopped})
		late(false)
		if a := <-answers; a.Body != (desk.Plain{Type: "failed", Error: "the job was stopped"}) {
			t.Errorf("a job that was stopped: %+v", a.Body)
		}
		w.set(func() { w.late = true })
		w.apply(plan.ResumeJob{ID: id})
		if w.runner.Desk(id, w.now().Index) != at {
			t.Error("the job has another desk")
		}
		go ask()
		synctest.Wait()
		goesOn("was just resumed")
		late(true)
		goesOn("was just resumed, after a round")
		w.apply(plan.StopJob{ID: id})
		w.apply(plan.RemoveJob{ID: id})
		late(false)
		if a := <-answers; a.Body != (desk.Plain{Type: "failed", Error: "the job was removed"}) {
			t.Errorf("a job that was removed: %+v", a.Body)
		}
	})
}
