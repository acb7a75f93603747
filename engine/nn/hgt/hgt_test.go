package hgt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// roots are of all types; 3 has no in-edges.
var roots = []uint32{4, 3, 1, 7, 5, 9}

// slope is that of the loss by a number, which set changes. A smaller distance stays on one side of
// where ReLU bends.
func slope(got, was float64, loss func(x float64) float64) (want float64, ok bool) {
	for _, h := range []float64{1e-5, 1e-6, 1e-7} {
		want = (loss(was+h) - loss(was-h)) / (2 * h)
		if near(got, want, 1e-6, 1e-8) {
			return want, true
		}
	}
	return want, false
}

// TestGradients compares the gradient of each weight, and of each number of rows that are learnt,
// with the slope of the loss, in float64.
func TestGradients(t *testing.T) {
	for name, s := range models() {
		for i := range 4 {
			s := s
			s.Layers, s.Dropout = 1+i%2, []float64{0, 0.3}[i/2]
			t.Run(fmt.Sprintf("%s,%d", name, i), func(t *testing.T) {
				t.Parallel()
				world := newWorld(uint64(i))
				m, w := newModel(t, s)
				m.LearnInput()
				b := world.batch(t, m, []int{0, 2}[i%2], roots)
				r := newRun(t, reference.New(), m, w)
				in, labels := world.input(r.device, b.Blocks[0].Vertices), labelsOf(roots)
				r.loss(b, in, labels, true)
				got, atRows := r.read(r.Gradients), r.read(r.InputGradient())
				for _, p := range m.Params() {
					seen := 0.0
					for j := p.Offset; j < p.Offset+p.Rows*p.Cols; j++ {
						seen += got[j] * got[j]
						x := w[j]
						want, ok := slope(got[j], x, func(x float64) float64 {
							w[j] = x
							r.device.Write(r.Weights, w)
							return r.loss(b, in, labels, false)
						})
						if w[j] = x; !ok {
							t.Fatalf("%s[%d]: gradient %v, slope %v", p.Name, j-p.Offset, got[j], want)
						}
					}
					r.device.Write(r.Weights, w)
					if seen == 0 {
						t.Errorf("all gradients of %s are 0", p.Name)
					}
				}
				x := r.read(in.Dense)
				for j, was := range x {
					want, ok := slope(atRows[j], was, func(to float64) float64 {
						x[j] = to
						r.device.Write(in.Dense, x)
						return r.loss(b, in, labels, false)
					})
					if x[j] = was; !ok {
						t.Fatalf("number %d of the rows: gradient %v, slope %v", j, atRows[j], want)
					}
				}
			})
		}
	}
}

// TestDevices compares the processor, and a device with memory of its own, with float64.
func TestDevices(t *testing.T) {
	for name, s := range models() {
		s.Dropout = 0.3
		world := newWorld(2)
		m, w := newModel(t, s)
		b := world.batch(t, m, 2, roots)
		gradients := func(d tensor.Device) []float64 {
			r, in := newRun(t, d, m, w), world.input(d, b.Blocks[0].Vertices)
			if d, is := d.(tensor.Foreign); is {
				a, err := d.NewArena(1 << 12)
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				host := in.Dense
				in.Dense = a.Alloc(tensor.F32, host.Rows, host.Cols)
				d.Write32(in.Dense, host.F32())
			}
			r.loss(b, in, labelsOf(roots), true)
			return r.read(r.Gradients)
		}
		want, one, more, away := gradients(reference.New()), gradients(cpu.New(1)), gradients(cpu.New(3)), gradients(foreign.New(2))
		for i, x := range want {
			if !near(one[i], x, 1e-3, 1e-4) {
				t.Errorf("%s: gradient %d is %v on the processor, and %v in float64", name, i, one[i], x)
			}
			if one[i] != more[i] || one[i] != away[i] {
				t.Errorf("%s: gradient %d is %v by one thread, %v by three, and %v elsewhere", name, i, one[i], more[i], away[i])
			}
		}
	}
}

// TestForecast compares what passes take of an arena with what is forecast of the sizes of blocks,
// whatever types and relations these have.
func TestForecast(t *testing.T) {
	for name, s := range models() {
		world := newWorld(3)
		m, _ := newModel(t, s)
		b := world.batch(t, m, 2, roots)
		var sizes []nn.Size
		for i := range b.Blocks {
			sizes = append(sizes, nn.Size{Targets: b.Blocks[i].Rows, Sources: b.Blocks[i].Cols, Entries: b.Blocks[i].Entries()})
		}
		device := dry.New(tensor.F32)
		arena := device.Arena()
		p := m.NewPass(device, arena)
		p.Weights, p.Train = tensor.OverF32(1, m.Size(), make([]float32, m.Size())), true
		p.Gradients = p.Weights
		p.Backward(p.Forward(b.Blocks, world.input(device, b.Blocks[0].Vertices)))
		arenaBytes, beside := m.Forecast(nn.InputSize{Rows: b.Blocks[0].Cols}, sizes)
		if arenaBytes != arena.Peak() || arenaBytes == 0 || beside < device.Beside() {
			t.Errorf("%s: %d and %d bytes are forecast, and %d and %d are taken", name, arenaBytes, beside, arena.Peak(), device.Beside())
		}
	}
}

// TestPartsAreTheWhole holds that a part of the vertices is computed as all are, to the bit.
func TestPartsAreTheWhole(t *testing.T) {
	for name, s := range models() {
		s.Layers = 1
		world, device := newWorld(4), cpu.New(2)
		m, w := newModel(t, s)
		sampler := world.sampler(t, m, 0)
		logits := func(first, n int) []float64 {
			r, b := newRun(t, device, m, w), world.batch(t, m, 0, all())
			if err := sampler.Part(&b.Blocks[0], first, n); err != nil {
				t.Fatal(err)
			}
			r.Train, r.Gradients = false, tensor.Matrix{}
			return r.read(r.Forward(b.Blocks, world.input(device, all())))
		}
		want := logits(0, vertices)
		got := slices.Concat(logits(0, 1), logits(1, 6), logits(7, 5))
		if !slices.Equal(got, want) {
			t.Errorf("%s: in parts\n%v and in the whole\n%v", name, got, want)
		}
		device.Close()
	}
}

// TestAStepAllocatesNothing holds this of the layer, once memory has been taken.
func TestAStepAllocatesNothing(t *testing.T) {
	world, device := newWorld(4), cpu.New(1)
	defer device.Close()
	m, w := newModel(t, models()["two heads"])
	b := world.batch(t, m, 0, roots)
	r, in, labels := newRun(t, device, m, w), world.input(device, b.Blocks[0].Vertices), labelsOf(roots)
	if n := testing.AllocsPerRun(5, func() { r.loss(b, in, labels, true) }); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

// TestWordsNameEveryWeight holds that whoever computes with the weights elsewhere reads of them all.
func TestWordsNameEveryWeight(t *testing.T) {
	m, _ := newModel(t, models()["two heads"])
	var text strings.Builder
	for _, step := range m.Steps() {
		text.WriteString(step.Equation)
	}
	for _, p := range m.Params() {
		if !strings.Contains(text.String(), p.Name) {
			t.Errorf("nothing is said of %s", p.Name)
		}
	}
}

// TestRefusals holds what a model refuses, in words.
func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(s *nn.Spec){
		"{hidden} is 6, which 4 heads of an hgt can't share: give a multiple of {heads}":                                                   func(s *nn.Spec) { s.Heads = 4 },
		"{heads} is 0, but must be from 1 to 256":                                                                                          func(s *nn.Spec) { s.Heads = 0 },
		"an hgt always ends in a linear head: leave out {model.head}=none":                                                                 func(s *nn.Spec) { s.Head = nn.HeadNone },
		"an hgt has no jumping knowledge: leave out {model.jump}=cat":                                                                      func(s *nn.Spec) { s.Jump = nn.JumpCat },
		"an hgt tells the relations of edges apart, and the dataset has none: choose another {model}, or import a typed graph":             func(s *nn.Spec) { s.Relations = 0 },
		"an hgt tells the relations of edges apart, and self-loops have none: leave out {model.self_loops}=on":                             func(s *nn.Spec) { s.SelfLoops = nn.LoopsOn },
		"the recipe does not say at which types relations begin: 6 relations end at 1 types: train it on the dataset that it was made for": func(s *nn.Spec) { s.Starts = "1" },
		"the recipe does not say at which types relations end: 6 relations end at 1 types: train it on the dataset that it was made for":   func(s *nn.Spec) { s.Ends = "1" },
	} {
		s := models()["two heads"]
		change(&s)
		if _, err := nn.New(s, columns, classes); err == nil || err.Error() != want {
			t.Errorf("%v\nand not\n%s", err, want)
		}
	}
}
