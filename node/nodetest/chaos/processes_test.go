//go:build processes

package chaos

import (
	"context"
	"errors"
	"flag"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/shape"
)

var program = flag.String("program", "", "the hopmesh program whose processes the histories befall")

const (
	lineRate  = 1_000_000_000 // of each node's link, in bits a second
	lineDelay = 10 * time.Millisecond
	toStop    = 40 * time.Second
)

// TestProcesses lets the histories of some seeds befall real processes, each in a network
// namespace of its own, as TestChaos does in virtual time. Clocks run, so a history takes about a
// minute.
func TestProcesses(t *testing.T) {
	if *program == "" || *count == 0 {
		t.Fatal("say which program, and how many seeds: `make chaos-processes` does")
	}
	faults := 0
	for seed := *first; seed < *first+*count; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { runProcesses(t, seed) })
		faults += len(draw(seed).Faults)
	}
	t.Logf("%d histories of %d faults took %.0f s of processor time", *count, faults, (spent(t) + spentBy(t, syscall.RUSAGE_CHILDREN)).Seconds())
}

func runProcesses(t *testing.T, seed uint64) {
	h := draw(seed)
	if *only != "" {
		h = h.only(numbers(t, *only))
	}
	want := undisturbed(t, h.Strategy) // which no network changes
	defer func() {
		if t.Failed() {
			t.Logf("%s\nto repeat it: make chaos-processes FIRST=%d SEEDS=1", h, seed)
		}
	}()
	s := settle(t, h)
	s.happen()
	if seed%5 == 4 && *only == "" {
		s.outage()
	}
	s.recover()
	s.check(want)
}

// A settlement is a mesh of processes, and what is known to be promised.
type settlement struct {
	*testing.T
	h      history
	field  *shape.Field
	crew   *shape.Crew
	disks  []disk
	job    string
	source string
	hurt   int          // whose files may be damaged; -1: nobody's yet
	still  map[int]bool // paused
	going  map[int]bool // asked to leave, or revoked
	mayEnd map[int]string
	tight  map[int]bool // begun while its disk was full
	*promises
	asked sync.WaitGroup
}

// A client asks a process.
type client struct{ *api.Client }

func (c client) StartJob(ctx context.Context, r api.TrainRequest) (string, error) {
	id, err := c.Client.StartJob(ctx, r)
	return id.ID, err
}

// settle starts a mesh with a dataset and a job that trains, before any fault.
func settle(t *testing.T, h history) *settlement {
	s := &settlement{
		T: t, h: h, source: files(t), hurt: -1, still: map[int]bool{}, going: map[int]bool{}, mayEnd: map[int]string{}, tight: map[int]bool{}, promises: noPromises(),
	}
	var err error
	if s.field, err = shape.New(t.Context(), most, shape.Link{Rate: lineRate, Delay: lineDelay}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.field.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.field.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The names of sockets must be short.
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.disks = attach(t, dir, most)
	if s.crew, err = s.field.StartSome(context.WithoutCancel(t.Context()), founders, *program, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	first := s.crew.Nodes[0].API
	s.wait("three nodes vote", time.Minute, func() bool {
		all, err := first.Members(t.Context())
		voters := 0
		for _, m := range all {
			if m.Role == "leader" || m.Role == "voter" {
				voters++
			}
		}
		return err == nil && voters >= 3
	})
	g := small("g")
	if h.Strategy == "single" {
		all := founders - 1
		g.Replicas = &all
	}
	if _, err := first.GenerateDataset(t.Context(), g, func(api.DatasetEvent) {}); err != nil {
		t.Fatal(err)
	}
	s.promise(s.datasets, "g")
	s.wait("all shards have copies", time.Minute, func() bool { return copies(s.dataset(0, "g")) >= 2 })
	if s.job, err = (client{first}).StartJob(t.Context(), long(h.Strategy)); err != nil {
		t.Fatal(err)
	}
	s.wait("the job has begun", time.Minute, func() bool { return len(s.jobOn(0, s.job).History) > 0 })
	return s
}

// wait waits until something is so, and ends the test if that takes too long.
func (s *settlement) wait(what string, most time.Duration, so func() bool) {
	for begin := time.Now(); !so(); {
		if time.Since(begin) > most {
			s.Fatalf("not within %v: %s\n%s", most, what, s.describe())
		}
		<-time.After(100 * time.Millisecond)
	}
}

// describe returns what each node says of itself.
func (s *settlement) describe() string {
	var b strings.Builder
	for i, p := range s.crew.Nodes {
		if !s.runs(i) {
			b.WriteString(p.Name + " does not run; its log says: " + p.Said() + "\n")
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		status, err := p.API.Status(ctx)
		cancel()
		j := s.jobOn(i, s.job)
		b.WriteString(p.Name + ": " + strings.Join(append(status.Problems, errText(err), "ready: "+strconv.FormatBool(status.Ready), "leader: "+status.Leader,
			"the job is "+j.State+" with "+strconv.Itoa(len(j.History))+" epochs "+j.Error), "; ") + "\n")
	}
	return b.String()
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// runs reports whether the process of a node runs.
func (s *settlement) runs(i int) bool {
	if i >= len(s.crew.Nodes) {
		return false
	}
	select {
	case <-s.crew.Nodes[i].Ended():
		return false
	default:
		return true
	}
}

// end stops all processes that are left. They must end in time, and in peace.
func (s *settlement) end() {
	for i := range s.crew.Nodes {
		s.wake(i)
	}
	if err := s.crew.Stop(); err != nil && len(s.mayEnd) == 0 {
		s.Error(err)
	}
}

func (s *settlement) wake(i int) {
	if s.still[i] {
		delete(s.still, i)
		_ = s.crew.Nodes[i].Signal(syscall.SIGCONT)
	}
}

func (s *settlement) happen() {
	for _, f := range s.h.Faults {
		<-time.After(f.After)
		s.bury()
		s.befall(f)
	}
}

// bury fails the test if a node has ended by itself that may not. Without room a node may refuse to
// begin, but one that runs waits for it.
func (s *settlement) bury() {
	for i, p := range s.crew.Nodes {
		if s.runs(i) || s.going[i] || p.Err() == nil || p.Signalled() {
			continue
		}
		if s.tight[i] && strings.Contains(p.Said(), "no space left") {
			continue
		}
		if may := s.mayEnd[i]; may == "" || !strings.Contains(p.Said(), may) {
			s.Fatalf("%s has ended: %v; its log says: %s", p.Name, p.Err(), p.Said())
		}
	}
}

func (s *settlement) befall(f fault) {
	ctx, nodes := s.Context(), len(s.crew.Nodes)
	i, other := int(f.Node)%nodes, int(f.Other)%nodes
	var err error
	switch f.Kind {
	case kill:
		err = s.kill(i, f.Much < 0.5)
	case stop:
		s.stop(i)
	case restart:
		err = s.restart(i)
	case cut:
		if i != other {
			err = s.field.Cut(ctx, i, other)
		}
	case isolate:
		err = s.field.Unplug(ctx, i)
	case pause:
		if s.runs(i) && !s.still[i] {
			s.still[i] = true
			err = s.crew.Nodes[i].Signal(syscall.SIGSTOP)
		}
	case split:
		at := 1 + int(f.Other)%(nodes-1)
		for a := range nodes {
			for b := range nodes {
				if (a < at) != (b < at) {
					err = errors.Join(err, s.field.Cut(ctx, a, b))
				}
			}
		}
	case heal:
		err = s.heal()
	case lose, slow: // packets are lost where a queue is full
		err = s.field.Throttle(ctx, i, 1_000_000+uint64(f.Much*20_000_000))
	case narrow:
		const least = 1280
		err = s.field.Narrow(ctx, i, least+int(f.Much*220))
	case fill:
		err = s.disks[i].fill()
	case drag, turn: // the disks and clocks of processes are the machine's
	case flip, truncate, disappear:
		s.damage(i, f)
	default:
		s.ask(i, other, f)
	}
	if err != nil {
		s.Fatalf("%s: %v", f, err)
	}
}

func (s *settlement) heal() error {
	for i := range s.crew.Nodes {
		s.wake(i)
		if err := s.disks[i].free(); err != nil {
			return err
		}
	}
	return s.field.Heal(s.Context())
}

// kill kills a node that runs, or pulls its plug.
func (s *settlement) kill(i int, plug bool) error {
	if !s.runs(i) {
		return nil
	}
	delete(s.still, i)
	_ = s.crew.Nodes[i].Kill()
	if !plug {
		return nil
	}
	s.Logf("what n%d has not synced is lost", i+1)
	return s.disks[i].blackout()
}

// outage has all machines lose their power at once.
func (s *settlement) outage() {
	var all []int
	for i, p := range s.crew.Nodes {
		if s.runs(i) {
			all = append(all, i)
			delete(s.still, i)
			_ = p.Kill()
		}
	}
	for _, i := range all {
		if err := s.disks[i].blackout(); err != nil {
			s.Fatal(err)
		}
	}
	s.Logf("what %d nodes have not synced is lost at once", len(all))
}

func (s *settlement) stop(i int) {
	if !s.runs(i) {
		return
	}
	s.wake(i)
	p := s.crew.Nodes[i]
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.Ended():
	case <-time.After(toStop):
		s.Fatalf("%s does not end; its log says: %s", p.Name, p.Said())
	}
}

func (s *settlement) restart(i int) error {
	if s.runs(i) || s.going[i] {
		return nil
	}
	s.tight[i] = s.disks[i].full()
	return s.crew.Begin(context.WithoutCancel(s.Context()), i)
}

// damage changes a file of a node, which is killed if it runs. All damage is one node's.
func (s *settlement) damage(i int, f fault) {
	if s.hurt >= 0 {
		i = s.hurt
	}
	if s.going[i] {
		return
	}
	err := s.kill(i, false)
	path := ""
	if err == nil {
		path, err = damage(s.crew.Nodes[i].Folder, f)
	}
	switch {
	case err != nil:
		s.Fatalf("damage a file of n%d: %v", i+1, err)
	case path != "":
		s.hurt = i
		if irreplaceable(path) {
			s.mayEnd[i] = "is damaged"
		}
		s.Logf("%s: %s", f.Kind, path)
	}
}

func (s *settlement) ask(via, target int, f fault) {
	if !s.runs(via) || s.still[via] {
		return
	}
	b := client{s.crew.Nodes[via].API}
	switch f.Kind {
	case join:
		s.join(b, via)
	case leave, revoke:
		s.part(b, target, f.Kind == revoke)
	default:
		if do := s.question(f.Kind, s.source); do != nil {
			s.later(b, do)
		} else if f.Kind != cancel {
			s.Fatalf("nobody knows what %q is", f.Kind)
		}
	}
}

// later runs a question to the end, beside the faults that follow.
func (s *settlement) later(b asked, do func(ctx context.Context, b asked)) {
	s.asked.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		do(ctx, b)
	})
}

// join starts one more node, which asks all that run.
func (s *settlement) join(b asked, via int) {
	if len(s.crew.Nodes) == most {
		return
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	t, err := b.CreateToken(ctx, 0, 0)
	if err != nil {
		return
	}
	s.promiseToken(t.ID)
	var enter []string
	for i := range s.crew.Nodes {
		if s.runs(i) {
			enter = append(enter, "--join", s.field.Addr(i).String()+":7946")
		}
	}
	i := len(s.crew.Nodes)
	s.mayEnd[i] = "token" // it may have ended with a node that is revoked
	if err := s.crew.Begin(context.WithoutCancel(s.Context()), i, append(enter, "--token", t.Token)...); err != nil {
		s.Fatal(err)
	}
}

// part has a node leave, or be revoked, as long as four remain.
func (s *settlement) part(b asked, target int, revoked bool) {
	rest := 0
	for i := range s.crew.Nodes {
		if (s.runs(i) || s.crew.Nodes[i].Signalled()) && !s.going[i] {
			rest++
		}
	}
	if rest <= founders || s.going[target] || target == s.hurt || !s.runs(target) || s.still[target] {
		return
	}
	s.going[target] = true
	name, leaves := s.crew.Nodes[target].Name, client{s.crew.Nodes[target].API}
	if !revoked {
		s.later(leaves, func(ctx context.Context, b asked) { _ = b.Leave(ctx) })
		return
	}
	s.later(b, func(ctx context.Context, b asked) {
		s.endTokens(func() error {
			_, err := b.ForceLeave(ctx, api.ForceLeaveRequest{Name: name, Revoke: true})
			return err
		})
	})
}
