package program_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/program"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// Programs that ask for different sums all hear what is wrong.
func TestUnlikeSums(t *testing.T) {
	for want, other := range map[string]desk.Question{
		"sums 8 numbers of f64 where that of node n1 sums 4 numbers of f64":   {DType: desk.F64, Region: &desk.Region{Bytes: 32}},
		"sums 8 numbers of f64 where that of node n1 sums 16 numbers of f32":  {DType: desk.F32, Region: &desk.Region{Bytes: 64}},
		"of node n0 sums 8 numbers of f64 where that of node n1 asks for the": {Type: desk.Next},
	} {
		w := newWorld(t, 2, jobOf([]int{3, 3}), traintest.Communities(t, 600))
		heard := make(chan string, 2)
		for node, d := range w.desks {
			p, err := d.Attach()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Leave()
			q := desk.Question{Type: desk.Sum, DType: desk.F64, Region: &desk.Region{Bytes: 64}}
			if node == 1 {
				if q = other; q.Type == "" {
					q.Type = desk.Sum
				}
			}
			go func() {
				line := desktest.Local(p)
				for _, first := range []desk.Question{{Type: desk.Hello, Version: desk.Version}, {Type: desk.Room, Bytes: 1 << 10}, {Type: desk.Next}, q} {
					a, err := askIn(line, first)
					if err != nil {
						heard <- err.Error()
						return
					}
					if a.Type == "failed" || a.Type == "again" {
						heard <- a.Error
						return
					}
				}
				heard <- ""
			}()
		}
		err := errors.Join(w.run(t.Context())...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		one, two := <-heard, <-heard
		if !strings.Contains(one, want) && !strings.Contains(two, want) {
			t.Errorf("%s: the programs hear %q and %q", want, one, two)
		}
	}
}

// rooms are the last rooms of lines.
var rooms sync.Map

// askIn asks, with regions in the last room.
func askIn(line desktest.Line, q desk.Question) (desktest.Reply, error) {
	if room, ok := rooms.Load(line); ok && q.Region != nil {
		region := *q.Region
		region.Memory = room.(uint64)
		q.Region = &region
	}
	a, err := line.Ask(q)
	if a.Type == "room" {
		rooms.Store(line, a.Region.Memory)
	}
	return a, err
}

// What a program asks wrongly gets a sentence, and the run waits for another program.
func TestWrongQuestions(t *testing.T) {
	const much = 1 << 40
	for want, q := range map[string]desk.Question{
		"is not the one that room was given in last":                {Type: desk.Sum, DType: desk.F64, Region: &desk.Region{Memory: 99, Bytes: 8}},
		"goes beyond its memory of 4096 bytes":                      {Type: desk.Sum, DType: desk.F64, Region: &desk.Region{Bytes: 4104}},
		"of 64 bytes from byte 18446744073709551552 on goes beyond": {Type: desk.Keep, Region: &desk.Region{Offset: math.MaxUint64 - 63, Bytes: 64}},
		"no multiple of 64":                                         {Type: desk.Sum, DType: desk.F64, Region: &desk.Region{Offset: 8, Bytes: 8}},
		"12 bytes are no whole number of f64":                       {Type: desk.Sum, DType: desk.F64, Region: &desk.Region{Bytes: 12}},
		"room for 1.0 GiB of sums and states takes 4.0":             {Type: desk.Room, Bytes: 1 << 30},
		"ask for report after the answer last":                      {Type: desk.Report},
		"one is under way: ask for stop after the answe":            {Type: desk.Stop},
	} {
		w := newWorld(t, 1, jobOf([]int{3, 3}), traintest.Communities(t, 600))
		w.change = func(_ int, o *train.Options) { o.Memory = much >> 10 }
		p, err := w.desks[0].Attach()
		if err != nil {
			t.Fatal(err)
		}
		line := desktest.Local(p)
		ended := make(chan []error, 1)
		go func() { ended <- w.run(t.Context()) }()
		for _, first := range []desk.Question{{Type: desk.Hello, Version: desk.Version}, {Type: desk.Room, Bytes: 1 << 10}, {Type: desk.Next}} {
			if a, err := askIn(line, first); err != nil || a.Type == "failed" {
				t.Fatal(a, err)
			}
		}
		if q.Region != nil && q.Region.Memory == 99 {
			rooms.Delete(line)
		}
		if a, err := askIn(line, q); err != nil || a.Type != "failed" || !strings.Contains(a.Error, want) {
			t.Errorf("%s: %+v, %v", want, a, err)
		}
		p.Leave()
		if errs := <-ended; !errors.Is(errs[0], desk.ErrLeft) {
			t.Errorf("%s: the run ends by %v", want, errs[0])
		}
	}
}

// A program that leaves before it has computed anything is replaced by the next.
func TestTheNextProgram(t *testing.T) {
	w := newWorld(t, 1, jobOf([]int{3, 3}), traintest.Communities(t, 600))
	ended := make(chan []error, 1)
	go func() { ended <- w.run(t.Context()) }()
	var states []*desk.Memory // that the programs were to go on from
	for i := range 3 {
		p, err := w.desks[0].Attach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.desks[0].Attach(); err == nil || !strings.Contains(err.Error(), "another program is attached") {
			t.Error(err)
		}
		a, err := p.Ask(desk.Question{Type: desk.Hello, Version: desk.Version})
		if err != nil {
			t.Fatal(a, err)
		}
		states = append(states, a.Uses...)
		if i == 0 {
			a, err = p.Ask(desk.Question{Type: desk.Room, Bytes: 8})
			if err != nil {
				t.Fatal(a, err)
			}
			region := desk.Region{Memory: a.Uses[0].ID, Bytes: 8}
			if a, err = p.Ask(desk.Question{Type: desk.Keep, Region: &region}); err != nil {
				t.Fatal(a, err)
			}
		}
		p.Leave()
	}
	if len(states) != 2 || !states[0].Closed() {
		t.Errorf("the memory of %d states is kept after the programs that read it have left", len(states))
	}
	last := w.attach(0)
	if errs := <-ended; errs[0] != nil {
		t.Fatal(errs[0])
	}
	w.finish([]chan error{last})
	if got := w.programs[0].Readies[0].State; got == nil || got.Bytes != 8 {
		t.Errorf("the last one goes on from %+v", got)
	}
}

func TestWhatIsRefused(t *testing.T) {
	about := dataset.Describe(traintest.Communities(t, 600))
	good := jobOf([]int{3, 3})
	if err := good.Check(about, strategies.All); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(r *recipe.Recipe){
		"{deterministic} promises":                                 func(r *recipe.Recipe) { r.Sharing.Deterministic = true },
		"{strategy} program and {model} sage don't go together":    func(r *recipe.Recipe) { r.Model = nn.Defaults("sage") },
		"{strategy} centric and {model} program don't go together": func(r *recipe.Recipe) { r.Sharing = strategy.Given("centric") },
		"{strategy} single and {model} program don't go":           func(r *recipe.Recipe) { r.Sharing = strategy.Settings{} },
		"{strategy} auto and {model} program don't go":             func(r *recipe.Recipe) { r.Sharing = strategy.Given("auto") },
		"{program.run}=a b: it is 1 to 64":                         func(r *recipe.Recipe) { r.Sharing = strategy.Given(program.Name, "program.run=a b") },
		"{fanout} has 3 numbers":                                   func(r *recipe.Recipe) { r.Fanouts = []int{1, 2, 3} },
	} {
		r := good
		change(&r)
		if err := r.Check(about, strategies.All); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if slices.Contains(nn.Models(), nn.Program) {
		t.Error("users can choose it")
	}
	_, err := train.Run(t.Context(), good, traintest.Communities(t, 600), train.Options{Threads: 1, Strategies: strategies.All})
	if err == nil || !strings.Contains(err.Error(), "no program can attach") {
		t.Error(err)
	}
}
