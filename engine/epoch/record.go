// Package epoch has the record of one epoch of training: the engine fills it, the nodes
// keep it in the mesh's plan, and the API and the command line show it. It knows nothing
// of any of them.
package epoch

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
)

// A Record is the report of one epoch, as plans store it. The plan holds one for each
// epoch and model, so a part that is zero is left out.
type Record struct {
	Epoch      int      `json:"epoch"`           // from 1
	Model      int      `json:"model,omitempty"` // index in a sweep, from 0
	Loss       float64  `json:"loss"`            // the mean over training vertices, during training
	Seconds    float64  `json:"seconds"`         // of training alone, on the slowest node
	Phases     Phases   `json:"phases,omitzero"` // the mean over the nodes
	Rows       Rows     `json:"rows,omitzero"`   // as all counts, the sum over the nodes
	Requests   Requests `json:"requests,omitzero"`
	Bytes      Bytes    `json:"bytes,omitzero"`
	Eval       *Eval    `json:"eval,omitempty"` // nil: not evaluated
	Generation uint64   `json:"generation"`     // of the plan whose run reported it
	Hash       string   `json:"weights"`        // hex SHA-256 of the weights
	// Strategy is the one that was used by several nodes, and Why the reason if it was
	// chosen automatically.
	Strategy string `json:"strategy,omitempty"`
	Why      string `json:"why,omitempty"`

	// What single strategies report: the number of slots of a step if models migrate;
	// by how many updates at most the weights of the first layer lagged behind their
	// step; the layout of a pipeline, if its nodes chose it; the super-epoch, from 1, of
	// groups that train in isolation, and the share of all edges that the groups of
	// their targets have seen so far.
	Slots     int     `json:"slots,omitempty"`
	Behind    int     `json:"behind,omitempty"`
	Predicted *Layout `json:"predicted,omitempty"`
	Super     int     `json:"super_epoch,omitempty"`
	Seen      float64 `json:"edges_seen,omitempty"`
	// Figures are what any other strategy reports, in the order in which they are shown.
	// They come in place of the fields above, which keeps records short.
	Figures []Figure `json:"figures,omitempty"`
}

// A Figure is a number that a strategy reports of an epoch. Its name heads a column.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Phases is where the time of an epoch went, in seconds. Work that overlaps counts in
// its own thread; Wait is computing's wait for samples.
type Phases struct {
	Sample  float64 `json:"sample"`
	Gather  float64 `json:"gather"`
	Compute float64 `json:"compute"`
	Reduce  float64 `json:"reduce"` // exchanging gradients and sums
	Wait    float64 `json:"wait"`
}

// Rows counts input rows by where they were. A row counts once per group or, if a device
// sums the outermost hop as it samples it, once per edge of that hop.
type Rows struct {
	Local  uint64 `json:"local"`
	Remote uint64 `json:"remote"`
	Kept   uint64 `json:"kept,omitempty"` // of Local: other nodes' rows that had come before
}

// Requests counts the requests of nodes to each other. Those of activations and
// gradients give a pipeline's payload.
type Requests struct {
	Feature    uint64 `json:"feature"`
	Topology   uint64 `json:"topology"`
	Activation uint64 `json:"activation,omitempty"`
	Gradient   uint64 `json:"gradient,omitempty"`
}

// Bytes counts the bytes that all nodes together sent, payload and framing.
type Bytes struct {
	Feature    uint64 `json:"feature"`
	Topology   uint64 `json:"topology"`
	Model      uint64 `json:"model"`
	Gradient   uint64 `json:"gradient"`
	Activation uint64 `json:"activation"`
	Shard      uint64 `json:"shard"`
	Control    uint64 `json:"control"`
}

// An Eval is the exact evaluation after an epoch. Accuracies are between 0 and 1, and nil
// where a part of the split has no vertices.
type Eval struct {
	Seconds float64  `json:"seconds"`
	Train   *float64 `json:"train,omitempty"`
	Val     *float64 `json:"val,omitempty"`
	Test    *float64 `json:"test,omitempty"`
	// Metrics are those of a task without an accuracy, in place of Train, Val and Test; or,
	// beside these, the one that ranks epochs, where that is another one than the accuracy.
	Metrics *Metrics `json:"metrics,omitempty"`
	// Score ranks epochs, the highest being best. Ties go to the lower Loss, which is
	// that on validation. Both are meaningless unless validation vertices were scored.
	Score float64 `json:"score"`
	Loss  float64 `json:"loss"`
	Bytes Bytes   `json:"bytes,omitzero"`
}

// Metrics are by name. Those of a part of the split without vertices are none.
type Metrics struct {
	By    string             `json:"by,omitempty"` // the one that ranks epochs
	Train map[string]float64 `json:"train,omitempty"`
	Val   map[string]float64 `json:"val,omitempty"`
	Test  map[string]float64 `json:"test,omitempty"`
}

// mostWhole is how many metrics of a part records have with all digits. Plans keep at most 400
// bytes for those of an epoch.
const mostWhole = 4

// Shorten rounds many metrics to six decimals. It makes maps of its own for them.
func (m *Metrics) Shorten() {
	if max(len(m.Val), len(m.Test)) <= mostWhole {
		return
	}
	for _, part := range []*map[string]float64{&m.Train, &m.Val, &m.Test} {
		*part = maps.Clone(*part)
		for name, x := range *part {
			(*part)[name] = math.Round(x*1e6) / 1e6
		}
	}
}

// Ranks reports whether an evaluation can rank its epoch: it has scored validation vertices.
func (e *Eval) Ranks() bool {
	return e != nil && (e.Val != nil || e.Metrics != nil && len(e.Metrics.Val) > 0)
}

// A Layout is the layout of a pipeline and the seconds of an epoch. They are measured in
// a trial when the nodes meet or, if there is no choice, estimated.
type Layout struct {
	Stages  int     `json:"stages"`
	Ways    int     `json:"ways"`
	Seconds float64 `json:"seconds"`
	History float64 `json:"history"` // part of Seconds for a history, divided among the epochs that use it
}

// Better reports whether r is a better epoch than best. An epoch that was not evaluated
// on validation vertices is never better.
func (r Record) Better(best Record) bool {
	switch {
	case !r.Eval.Ranks():
		return false
	case best.Eval == nil:
		return true
	}
	return cmp.Or(cmp.Compare(r.Eval.Score, best.Eval.Score), cmp.Compare(best.Eval.Loss, r.Eval.Loss)) > 0
}

// AddCost adds the time, rows, requests and bytes of another model in the same epoch. Its
// evaluation counts if both were evaluated.
func (r *Record) AddCost(o *Record) {
	r.Seconds += o.Seconds
	r.Phases.Add(o.Phases)
	r.Rows.Add(o.Rows)
	r.Requests.Feature += o.Requests.Feature
	r.Requests.Topology += o.Requests.Topology
	r.Requests.Activation += o.Requests.Activation
	r.Requests.Gradient += o.Requests.Gradient
	r.Bytes.Add(o.Bytes)
	if r.Eval != nil && o.Eval != nil {
		sum := *r.Eval // others may hold it
		sum.Seconds += o.Eval.Seconds
		sum.Bytes.Add(o.Eval.Bytes)
		r.Eval = &sum
	}
}

// Rounded returns the record with times rounded to the microsecond, which keeps plans
// small, and 0 for numbers that are not finite, which JSON does not have.
func (r Record) Rounded() Record {
	r.Loss, r.Seconds = Number(r.Loss), rounded(r.Seconds)
	for _, s := range []*float64{&r.Phases.Sample, &r.Phases.Gather, &r.Phases.Compute, &r.Phases.Reduce, &r.Phases.Wait} {
		*s = rounded(*s)
	}
	if r.Predicted != nil {
		p := *r.Predicted
		p.Seconds, p.History = rounded(p.Seconds), rounded(p.History)
		r.Predicted = &p
	}
	r.Figures = slices.Clone(r.Figures)
	for i := range r.Figures {
		r.Figures[i].Value = Number(r.Figures[i].Value)
	}
	if r.Eval != nil {
		e := *r.Eval
		e.Seconds, e.Score, e.Loss = rounded(e.Seconds), Number(e.Score), Number(e.Loss)
		for _, share := range []**float64{&e.Train, &e.Val, &e.Test} {
			if *share != nil {
				*share = new(Number(**share))
			}
		}
		if m := e.Metrics; m != nil {
			e.Metrics = &Metrics{By: m.By, Train: short(m.Train), Val: short(m.Val), Test: short(m.Test)}
		}
		r.Eval = &e
	}
	return r
}

// short returns metrics with six digits.
func short(of map[string]float64) map[string]float64 {
	to := make(map[string]float64, len(of))
	for name, x := range of {
		// What is written with few digits is read as a number.
		to[name], _ = strconv.ParseFloat(strconv.FormatFloat(Number(x), 'g', 6, 64), 64)
	}
	return to
}

func rounded(seconds float64) float64 { return math.Round(Number(seconds)*1e6) / 1e6 }

// Number returns f, or 0 if f is not finite.
func Number(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// Add adds other phases.
func (p *Phases) Add(o Phases) { p.AddShare(o, 1) }

// AddShare adds a share of other phases: 1/n for the mean of n.
func (p *Phases) AddShare(o Phases, share float64) {
	p.Sample += share * o.Sample
	p.Gather += share * o.Gather
	p.Compute += share * o.Compute
	p.Reduce += share * o.Reduce
	p.Wait += share * o.Wait
}

// Add adds other rows.
func (r *Rows) Add(o Rows) {
	r.Local += o.Local
	r.Remote += o.Remote
	r.Kept += o.Kept
}

// Total returns the number of rows, wherever they were.
func (r Rows) Total() uint64 { return r.Local + r.Remote }

// Kinds returns the counts of all kinds, in the order of the fields.
func (b *Bytes) Kinds() [7]*uint64 {
	return [...]*uint64{&b.Feature, &b.Topology, &b.Model, &b.Gradient, &b.Activation, &b.Shard, &b.Control}
}

// Add adds other bytes, kind by kind.
func (b *Bytes) Add(o Bytes) {
	for i, n := range o.Kinds() {
		*b.Kinds()[i] += *n
	}
}

// Total returns the sum over all kinds.
func (b Bytes) Total() (sum uint64) {
	for _, n := range b.Kinds() {
		sum += *n
	}
	return sum
}
