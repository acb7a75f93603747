package hgt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/nn/nntest"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// roots are of all types; 3 has no in-edges.
var roots = []uint32{4, 3, 1, 7, 5, 9}

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
				m, w := nntest.NewModel(t, s)
				m.LearnInput()
				b := world.Batch(t, m, []int{0, 2}[i%2], roots)
				r := nntest.NewRun(t, reference.New(), m, w)
				in, labels := world.Input(r.Device, b.Blocks[0].Vertices), nntest.LabelsOf(roots)
				r.Loss(b, in, labels, true)
				got, atRows := r.Read(r.Gradients), r.Read(r.InputGradient())
				for _, p := range m.Params() {
					if !slices.ContainsFunc(got[p.Offset:][:p.Rows*p.Cols], func(x float64) bool { return x != 0 }) {
						t.Errorf("all gradients of %s are 0", p.Name)
					}
				}
				r.Slopes(t, m.Params(), w, got, func() float64 { return r.Loss(b, in, labels, false) })
				x := r.Read(in.Dense)
				for j, was := range x {
					want, ok := nntest.Slope(atRows[j], was, func(to float64) float64 {
						x[j] = to
						r.Device.Write(in.Dense, x)
						return r.Loss(b, in, labels, false)
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
		t.Run(name, func(t *testing.T) { newWorld(2).SameOnDevices(t, s, roots) })
	}
}

// TestForecast compares what passes take of an arena with what is forecast of the sizes of blocks,
// whatever types and relations these have.
func TestForecast(t *testing.T) {
	for name, s := range models() {
		t.Run(name, func(t *testing.T) { newWorld(3).TakesWhatIsForecast(t, s, roots) })
	}
}

// TestPartsAreTheWhole holds that a part of the vertices is computed as all are, to the bit.
func TestPartsAreTheWhole(t *testing.T) {
	for name, s := range models() {
		s.Layers = 1
		world, device := newWorld(4), cpu.New(2)
		m, w := nntest.NewModel(t, s)
		sampler := world.Sampler(t, m, 0)
		logits := func(first, n int) []float64 {
			r, b := nntest.NewRun(t, device, m, w), world.Batch(t, m, 0, world.All())
			if err := sampler.Part(&b.Blocks[0], first, n); err != nil {
				t.Fatal(err)
			}
			r.Train, r.Gradients = false, tensor.Matrix{}
			return r.Read(r.Forward(b.Blocks, world.Input(device, world.All())))
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
	m, w := nntest.NewModel(t, models()["two heads"])
	b := world.Batch(t, m, 0, roots)
	r, in, labels := nntest.NewRun(t, device, m, w), world.Input(device, b.Blocks[0].Vertices), nntest.LabelsOf(roots)
	if n := testing.AllocsPerRun(5, func() { r.Loss(b, in, labels, true) }); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

// TestWordsNameEveryWeight holds that whoever computes with the weights elsewhere reads of them all.
func TestWordsNameEveryWeight(t *testing.T) {
	m, _ := nntest.NewModel(t, models()["two heads"])
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
		if _, err := nn.New(s, nntest.Columns, nntest.Classes); err == nil || err.Error() != want {
			t.Errorf("%v\nand not\n%s", err, want)
		}
	}
}
