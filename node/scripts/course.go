package scripts

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/ongoing"
)

// patience is how long a node that is not known to be dead may give no answer.
const patience = 30 * time.Second

// A course is a run of a script, as the node that was asked for it follows it.
type course struct {
	on *Scripts
	begin
	most     int // nodes; 0: all
	outcomes chan outcome

	mu   sync.Mutex
	tell func(api.RunEvent)
}

// An outcome is how a script beside a node has ended.
type outcome struct {
	node  Node
	code  int
	last  string
	gone  bool  // with its node, or
	ended bool  // its node has ended it
	apart bool  // it was not started
	err   error // it can't be run
}

// Start runs a script beside the nodes, and returns when it has ended well beside all that live.
// It calls tell from several goroutines, one at a time.
func (s *Scripts) Start(ctx context.Context, r api.RunRequest, tell func(api.RunEvent)) (api.RunDone, error) {
	ctx, done, err := s.underWay.Begin(ctx)
	if err != nil {
		return api.RunDone{}, api.Unavailable("%v", err)
	}
	defer done()
	nodes := s.Nodes()
	if r.Nodes > len(nodes) {
		return api.RunDone{}, api.Conflict("the mesh has %d nodes that live, and the script is to run beside %d: give fewer, or all", len(nodes), r.Nodes)
	}
	if r.Nodes > 0 {
		nodes = nodes[:r.Nodes]
	}
	name := r.Name
	if !names.MatchString(name) {
		name = "script.py"
	}
	c := &course{on: s, most: r.Nodes, outcomes: make(chan outcome), tell: tell, begin: begin{
		Word: cmp.Or(r.Run, word()), Asker: word(), Name: name, Script: r.Script, Args: r.Args, Size: len(nodes),
	}}
	d := api.RunDone{Run: c.Word}
	for _, n := range nodes {
		d.Nodes = append(d.Nodes, n.Name)
	}
	c.say(api.RunEvent{Started: &d})
	err = c.follow(ctx, nodes)
	if errors.Is(err, errTaken) { // its jobs are those of the other request
		return d, api.Conflict("another request runs the script of %s since: follow that one", c.Word)
	}
	if err != nil {
		if !errors.Is(context.Cause(ctx), ongoing.ErrStopping) { // the others may go on
			c.stop(ctx)
		}
		return d, err
	}
	return d, nil
}

// word returns one that no other run has.
func word() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

func (c *course) say(e api.RunEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell(e)
}

// follow runs the script beside nodes, and beside those that come later.
func (c *course) follow(ctx context.Context, nodes []Node) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	running := map[string]bool{}
	start := func(n Node, rank int, later bool) {
		running[n.ID] = true
		all.Go(func() {
			o := c.beside(ctx, n, rank, later)
			select {
			case c.outcomes <- o:
			case <-ctx.Done():
			}
		})
	}
	defer all.Wait()
	defer cancel(errEnded)
	for rank, n := range nodes {
		start(n, rank, false)
	}
	endedWell, left := false, "the daemons are gone, and with them the run"
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for len(running) > 0 {
		select {
		case o := <-c.outcomes:
			delete(running, o.node.ID)
			switch {
			case o.err != nil:
				return o.err
			case o.ended:
				left = "the daemons have ended the script, as one does that is stopped, was started anew, or could not be reached: start it again"
				c.say(api.RunEvent{Node: o.node.Name, Note: "its daemon has ended the script"})
			case o.gone:
				c.say(api.RunEvent{Node: o.node.Name, Note: "its daemon is gone"})
			case o.code != 0:
				return failed(o)
			case !o.apart:
				endedWell = true
			}
		case <-tick.C:
			for _, n := range c.on.Nodes() {
				if !endedWell && !running[n.ID] && (c.most == 0 || len(running) < c.most) && c.on.goesOn(c.Word) {
					start(n, min(len(running), c.Size-1), true)
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if !endedWell {
		return api.NewError(http.StatusUnprocessableEntity, "%s", left)
	}
	return nil
}

// failed returns the error of a script that has failed.
func failed(o outcome) error {
	how := fmt.Sprintf("with exit code %d", o.code)
	if o.code < 0 {
		how = fmt.Sprintf("by signal %d", -o.code)
	}
	if o.last != "" {
		how += ": " + o.last
	}
	return api.NewError(http.StatusUnprocessableEntity, "the script beside %s ended %s", o.node.Name, how)
}

// beside has a node run the script, and passes its output on. When ctx ends, it has the node end
// it.
func (c *course) beside(ctx context.Context, n Node, rank int, later bool) outcome {
	b := c.begin
	b.Rank, b.Later = rank, later
	answer, err := c.on.ask(ctx, n.ID, callStart, b)
	switch {
	case later && err != nil: // it may be too young, or about to end
		return outcome{node: n, apart: true}
	case err != nil && !c.lives(n):
		return outcome{node: n, gone: true}
	case err != nil:
		return outcome{node: n, err: refusal(n, err)}
	case answer.Apart:
		return outcome{node: n, apart: true}
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+pause)
		defer cancel()
		// Without an answer the node ends the script when nobody asks for its output.
		_, _ = c.on.ask(ending, n.ID, callEnd, look{Run: c.Word, Asker: c.Asker})
	}()
	// A user may read output slowly, or not at all until the stream counts them as gone.
	renewing, enough := context.WithCancel(ctx)
	var renews sync.WaitGroup
	renews.Go(func() { c.renew(renewing, n) })
	defer renews.Wait()
	defer enough()
	if later {
		c.say(api.RunEvent{Node: n.Name, Note: "starts too, from the last checkpoint"})
	}
	heard, from := time.Now(), 0
	for ctx.Err() == nil {
		r, err := c.on.ask(ctx, n.ID, callLook, look{Run: c.Word, Asker: c.Asker, From: from})
		if mesh.RefusalOf(err) == taken {
			return outcome{node: n, err: errTaken}
		}
		if err != nil {
			if ended := mesh.RefusalOf(err) != ""; ended || !c.lives(n) || time.Since(heard) > patience {
				return outcome{node: n, gone: true, ended: ended}
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		from += len(r.Lines)
		for _, l := range r.Lines {
			e := api.RunEvent{Node: n.Name, Line: &l.Text}
			if l.Note {
				e.Line, e.Note = nil, l.Text
			}
			c.say(e)
		}
		heard = time.Now()
		if r.Over {
			return outcome{node: n, code: r.Code, last: r.Last}
		}
	}
	return outcome{node: n, gone: true}
}

// renew keeps a node's script running, until ctx ends. What goes wrong shows when output is asked for.
func (c *course) renew(ctx context.Context, n Node) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = c.on.ask(ctx, n.ID, callLook, look{Run: c.Word, Asker: c.Asker, Keep: true})
		case <-ctx.Done():
			return
		}
	}
}

// refusal words the error of a node that does not start a script.
func refusal(n Node, err error) error {
	if r, is := errors.AsType[*mesh.Refusal](err); is {
		return api.Conflict("no script runs beside %s: %s", n.Name, r.Message)
	}
	return api.Unavailable("no script runs beside %s: %v", n.Name, err)
}

func (c *course) lives(n Node) bool {
	return slices.ContainsFunc(c.on.Nodes(), func(o Node) bool { return o.ID == n.ID })
}

// stop stops the jobs of the run, whose nodes would wait for the script.
func (c *course) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	for _, j := range c.on.Jobs() {
		if !ofRun(j.Run, c.Word) || j.Over {
			continue
		}
		if err := c.on.Stop(ctx, j.ID); err != nil {
			c.on.Log.Warn("the job of a run that has failed could not be stopped", "job", j.ID, "err", err)
		}
	}
}
