package forecast

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/deal"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/fit"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Strategy is what a forecast must know of a strategy.
type Strategy struct {
	Name string
	// Deal and Asking are those of train.Descriptor. Without Deal one node does all.
	Deal   func(peer.Layout, strategy.Settings) (deal.Dealer, error)
	Asking func(*strategy.Settings) gather.Options
	// Check returns an error if a job can't be trained so; nil: any can.
	Check func(r *recipe.Recipe, model *nn.Model, about dataset.About) error
	// Complete writes defaults down that depend on the nodes; nil: there are none.
	Complete func(*strategy.Settings, strategy.Place)
	Exact    bool // it computes what one machine does
	Hooks
}

// Hooks are what strategies say of themselves to be forecast.
type Hooks struct {
	// Volume returns what a step sends; nil: what Batched does.
	Volume func(s *Step) Volume
	// Takes adds the memory that a node takes in a step to what all strategies take, and
	// returns that of the steps under way; nil: it takes no more.
	Takes func(s *Step, node int, to *fit.Step) (underWay uint64)
	// Sight is for groups that draw and read in isolation, and Whole for steps of the whole
	// graph; nil: steps are mini-batches of which nodes ask each other for the rest.
	Sight func(*Isolation) (Sight, error)
	Whole func(context.Context, *Whole) (Outcome, error)
}

// A Step is one step of all nodes, as counted.
type Step struct {
	Nodes   int
	Index   int  // in the epoch
	Last    bool // of the epoch
	Model   *nn.Model
	Moments int // rows of the optimizer, each as long as the weights
	Number  int // bytes of a number that travels
	Columns int // of features
	Rowed
	Row      float64 // bytes of a row of features on the wire
	Valued   bool    // blocks have values
	Sharded  bool    // nodes lack the edges of others' shards
	Owned    []int   // vertices of each node's own shards; there are so many shards:
	Shards   int
	Settings *strategy.Settings
	Loads    []Load
}

// A Load is the work of one node in a step.
type Load struct {
	Roots, Groups int // groups with seed vertices
	Inputs, First int // sources and targets of the outermost blocks
	Edges         int // their entries
	Rows          int // computed: the sources of all blocks
	Local, Remote int // rows of features
	Sent          peer.Counts
	Grains        []int // shards whose gradients it adds up by themselves, where weights are deterministic
}

// A Volume is what a step sends.
type Volume struct {
	All peer.Counts // by all nodes together
	// Hidden and Exposed come to the busiest node, in bytes: while it computes another
	// step, and while it waits. Rounds are its waits.
	Hidden, Exposed uint64
	Rounds          int
	Asked           int // questions of the node that asks most while it waits
	// Once comes to the busiest node once in a job, and OnceAll to all nodes.
	Once    uint64
	OnceAll peer.Counts
	// Made is the processor time that a node takes to make something of what comes, in
	// seconds.
	Made float64
	// Held is the memory that a node takes for the whole job, beside what all strategies
	// take.
	Held uint64
}

// A Subject is a job on a graph.
type Subject struct {
	Recipe *recipe.Recipe
	Graph  *Graph
	Place  Place  // nil: even runs of shards, without copies
	Memory uint64 // that a node has; 0: not bounded
	Looks  int    // how many steps are counted; 0: all of up to ten, else 3
	Dir    string // of files for what jobs keep in files; "": it is made in memory
}

// A Row is the forecast of one strategy on some nodes.
type Row struct {
	Strategy string
	Nodes    int
	Steps    int         // of an epoch
	Bytes    peer.Counts // of an epoch but the first, of all nodes together
	Once     peer.Counts // and once in a job
	Memory   uint64      // of the node that needs most
	Sharded  bool        // nodes ask each other for neighbours
	Fits     bool
	Exact    bool
	Why      string // it does not fit, or can't train the model
	Seconds  float64
	Parts    Parts
}

// Parts are the seconds of an epoch on the slowest node. Preparing runs beside the rest.
type Parts struct {
	Compute float64 `json:"compute"`
	Prepare float64 `json:"prepare"` // sampling, and gathering local rows
	Hidden  float64 `json:"hidden"`  // bytes that come while others steps are computed
	Wait    float64 `json:"wait"`    // for gradients, and whatever else is not hidden
	Once    float64 `json:"once"`    // of what comes once in a job, not in an epoch's time
}

// looked is the epoch whose steps are counted. The first is unlike the others.
const looked = 2

// job is a Subject with what follows from it.
type job struct {
	*Subject
	model    *nn.Model
	sampling sample.Options
	costs    []uint64
	steps    [][]uint32 // seed vertices of the steps that are counted
	count    int        // of steps in an epoch
	same     bool       // one batch serves all epochs
	counter  counter
	kept     map[string]any // see Whole
}

func newJob(s *Subject) (*job, error) {
	if s.Recipe.Embeddings > 0 {
		s = s.learning()
	}
	j := &job{Subject: s, kept: map[string]any{}}
	var err error
	if j.model, err = s.Recipe.NewModel(s.Graph.Columns, s.Graph.About.Classes); err != nil {
		return nil, err
	}
	j.sampling = sample.Options{Fanouts: s.Recipe.Fanouts, Each: s.Recipe.Each, Form: j.model.Form(), Seed: s.Recipe.Seed}
	j.sampling.Far = s.Graph.Far
	if s.Graph.valued { // values do not change what is counted
		j.sampling.Form.Weighting = sample.Ones
	}
	if len(j.sampling.Fanouts) == 0 {
		j.sampling.Fanouts = make([]int, j.model.Hops())
	}
	j.costs = s.Graph.costs(j.sampling.Fanouts)
	order := slices.Clone(s.Graph.Training)
	if len(order) == 0 {
		return nil, fmt.Errorf("split %d has no training vertices: choose another {split}", s.Recipe.Split)
	}
	size := s.Recipe.Batch
	if size == 0 || size > len(order) {
		size = len(order)
	}
	j.count = (len(order) + size - 1) / size
	if j.count > 1 {
		sample.Order(s.Recipe.Seed, looked, order)
	}
	j.same = j.count == 1 && !slices.ContainsFunc(j.sampling.Fanouts, func(n int) bool { return n > 0 })
	looks := 3
	if j.count <= 10 { // the last one may be a small one
		looks = j.count
	}
	for step := range min(cmp.Or(s.Looks, looks), j.count) {
		j.steps = append(j.steps, order[step*size:min((step+1)*size, len(order))])
	}
	j.counter = counter{learnt: s.Recipe.Embeddings > 0, left: left, sizes: sample.NewCounter(s.Graph.Topology, j.sampling), sampler: sample.New(s.Graph.Topology, j.sampling), loops: j.sampling.Form.SelfLoops, words: s.Graph.About.Words(), weighted: s.Graph.Weighted || j.sampling.Form.Relations > 0, rooted: j.model.Form().Weighting == sample.Symmetric}
	if s.Graph.pairs != nil {
		j.counter.pairs = &pairing{of: s.Graph.pairs}
		j.counter.sampler.Prune(&j.counter.pairs.batch)
	}
	if j.counter.row, err = s.Graph.row(s.Recipe.Sharing.Wire()); err != nil {
		return nil, err
	}
	return j, nil
}

// Make forecasts a job by each of some strategies on each of some numbers of nodes, and
// calls report with each row.
func Make(ctx context.Context, s *Subject, strategies []Strategy, nodes []int, rates Rates, report func(Row)) ([]Row, error) {
	j, err := newJob(s)
	if err != nil {
		return nil, err
	}
	if err := j.counter.look(ctx, j.steps[0]); err != nil {
		return nil, err
	}
	clock, err := newClock(ctx, j)
	if err != nil {
		return nil, err
	}
	defer clock.close()
	var rows []Row
	for _, n := range nodes {
		place := s.Place
		if place == nil {
			place = Even(len(s.Graph.Firsts)-1, 0)
		}
		m := newMesh(s.Graph.Firsts, place, j.costs, n)
		for _, of := range strategies {
			if (of.Deal == nil) != (n == 1) {
				continue
			}
			row, err := j.row(ctx, m, &of, clock, rates)
			if err != nil {
				return nil, fmt.Errorf("forecast %s on %d nodes: %w", of.Name, n, err)
			}
			rows = append(rows, row)
			report(row)
		}
	}
	return rows, nil
}

// row forecasts one strategy on one mesh.
func (j *job) row(ctx context.Context, m *mesh, of *Strategy, clock *clock, rates Rates) (Row, error) {
	n := m.layout.Nodes
	r := Row{Strategy: of.Name, Nodes: n, Steps: j.count, Exact: of.Exact || n == 1}
	whole := *j.Recipe
	if of.Whole != nil {
		whole.Batch, whole.Fanouts, r.Steps = 0, nil, 1
	}
	settings := strategy.Settings{Strategy: of.Name, Deterministic: whole.Sharing.Deterministic, Values: whole.Sharing.Values}
	if of.Complete != nil {
		of.Complete(&settings, strategy.Place{Nodes: n, Shards: len(m.layout.Owners), Bytes: j.bytes(), Memory: j.Memory})
	}
	whole.Sharing = settings
	if of.Check != nil {
		if wrong := of.Check(&whole, j.model, j.Graph.About); wrong != nil {
			r.Why = wrong.Error()
			return r, nil //nolint:nilerr // this is the forecast
		}
	}
	var err error
	if of.Whole != nil {
		err = j.whole(ctx, m, of, &whole, rates, &r)
	} else {
		err = j.batches(ctx, m, of, &settings, clock, rates, &r)
	}
	if err != nil || r.Why != "" {
		return r, err
	}
	pairs := uint64(n * (n - 1))
	r.Bytes.Bytes[peer.Control] += pairs * (peer.QueryFraming + peer.AnswerFraming + reportBytes)
	r.Bytes.Requests[peer.Control] += pairs
	return r, nil
}

// batches forecasts mini-batches.
func (j *job) batches(ctx context.Context, m *mesh, of *Strategy, settings *strategy.Settings, clock *clock, rates Rates, r *Row) error {
	n := m.layout.Nodes
	look := look{dealer: deal.NewAlone(&m.layout, settings.Deterministic)}
	if of.Deal != nil {
		var err error
		if look.dealer, err = of.Deal(m.layout, *settings); err != nil {
			return err
		}
		if of.Asking != nil {
			look.asking = of.Asking(settings)
		}
	}
	var brought Brought
	if of.Sight != nil {
		var err error
		if look.sight, err = of.Sight(j.isolation(m, settings)); err != nil {
			return err
		}
		defer j.unconfined()
		if brought, err = look.sight.Brought(); err != nil {
			return err
		}
	}
	j.counter.confined(look.sight)
	edges := j.edgesOfOthers(m)
	r.Sharded = n > 1 && look.sight == nil && j.Graph.pairs == nil && sharded(settings, edges, j.Memory)
	look.sharded = r.Sharded
	loads, err := j.loads(ctx, m, &look)
	if err != nil {
		return err
	}
	worst := &sizes{learnt: learntOn(j, m, of.Sight != nil)}
	var sum peer.Counts
	var t timing
	for at := range loads {
		step := &Step{
			Nodes: n, Index: at, Last: at+1 == j.count, Model: j.model, Moments: len(j.Recipe.Optimizer.Moments()), Number: 4,
			Columns: j.Graph.Columns, Rowed: Rowed{j.Recipe.Embeddings, worst.share(j)}, Row: j.counter.row, Valued: j.model.Form().Weighting != sample.Ones,
			Sharded: r.Sharded, Owned: m.owned(), Shards: len(m.layout.Owners), Settings: settings,
		}
		heaviest := loads[at][0]
		for _, l := range loads[at] {
			step.Loads = append(step.Loads, l.summary())
			if l.rows()+l.edges() > heaviest.rows()+heaviest.edges() {
				heaviest = l
			}
		}
		for node, l := range loads[at] {
			worst.see(j, of, step, node, l)
		}
		v := j.volume(of, step)
		if j.same { // what is prepared serves all epochs
			v.once(v.All)
		}
		sum.Add(v.All)
		if at == 0 {
			r.Once = v.OnceAll
			t.once = float64(v.Once+brought.First.Busiest) / rates.Bandwidth
			worst.held = v.Held + brought.Held
		}
		v.Hidden, v.Made = v.Hidden+brought.hidden(j.count), brought.made(j.count)
		v.All.Add(brought.sent(j.count)) // processors move it, too
		if err := clock.fits(worst); err != nil {
			return err
		}
		if err := t.add(ctx, clock, heaviest, step, &v, rates); err != nil {
			return err
		}
	}
	r.Bytes = j.epoch(sum)
	brought.add(r)
	r.Parts, r.Seconds = t.epoch(j.seeds())
	agree := rates.agree(n)
	r.Parts.Wait, r.Seconds = r.Parts.Wait+agree, r.Seconds+agree
	if !r.Sharded && (look.sight == nil || j.Graph.pairs != nil || j.sampling.Form.EdgeFeatures > 0) {
		worst.edges = edges
	}
	return j.fits(m, worst, r, look.sight != nil)
}

// fits fills a row with the memory of a node, and whether it has as much.
func (j *job) fits(m *mesh, z *sizes, r *Row, isolated bool) error {
	needs, err := z.needs(j, m, isolated)
	r.Memory = needs.Total()
	r.Fits = j.Memory == 0 || needs.OnHost() <= j.Memory
	if !r.Fits {
		r.Memory = needs.OnHost()
		r.Why = fmt.Sprintf("a node needs %s of memory and has %s", budget.Format(r.Memory), budget.Format(j.Memory))
	}
	return err
}

// volume returns what a step sends, of mini-batches unless the strategy says otherwise.
func (j *job) volume(of *Strategy, s *Step) Volume {
	if of.Volume != nil {
		return of.Volume(s)
	}
	return Batched(s)
}

// reportBytes is the size of the message by which nodes agree on an epoch.
const reportBytes = 256

// once moves what nodes ask each other for ahead to what is sent once.
func (v *Volume) once(all peer.Counts) {
	for _, k := range []peer.Kind{peer.Feature, peer.Topology} {
		v.OnceAll.Bytes[k] += all.Bytes[k]
		v.OnceAll.Requests[k] += all.Requests[k]
		v.All.Bytes[k], v.All.Requests[k] = 0, 0
	}
	v.Once, v.Hidden = v.Once+v.Hidden, 0
}

// Batched is the Volume of mini-batches: what nodes ask each other for is hidden behind
// computing, and the sum of gradients is not.
func Batched(s *Step) Volume {
	v := Rows(s)
	if s.Nodes > 1 {
		v.AddSum(s, s.Model.Size(), s.Sums())
		v.AddLearnt(s)
	}
	return v
}

// AddSum adds a sum of so many columns over all nodes, to which each contributes these rows (nil: one
// each).
func (v *Volume) AddSum(s *Step, columns int, rows []int) {
	sum := exchange.VolumeOf(s.Nodes, columns, s.Number, rows)
	v.All.Add(sum.All)
	v.Exposed, v.Asked, v.Rounds = v.Exposed+sum.Busiest, v.Asked+sum.Asked, v.Rounds+sum.Rounds
}

// Sums returns how many sums of gradients each node contributes to that of all; nil: one.
// With the same bits on any number of nodes these are subtrees over shards.
func (s *Step) Sums() []int {
	if !s.Settings.Deterministic {
		return nil
	}
	holders := make([]int, s.Shards)
	for shard := range holders {
		holders[shard] = -1
	}
	for node := range s.Loads {
		for _, grain := range s.Loads[node].Grains {
			holders[grain] = node
		}
	}
	rows := make([]int, s.Nodes)
	for node, spans := range exchange.Spans(holders, s.Nodes) {
		rows[node] = len(spans)
	}
	return rows
}

// Rows is the Volume of the rows of features and of edges that nodes ask each other for.
func Rows(s *Step) (v Volume) {
	for i := range s.Loads {
		l := &s.Loads[i]
		v.All.Add(l.Sent)
		v.Hidden = max(v.Hidden, l.Sent.Bytes[peer.Feature]+l.Sent.Bytes[peer.Topology])
	}
	return v
}

// summary returns what strategies see of a load.
func (l *load) summary() Load {
	s := Load{Rows: l.rows(), Local: l.local, Remote: l.remote, Sent: l.counts}
	for _, g := range l.groups {
		if g.roots == 0 {
			continue
		}
		s.Groups++
		s.Grains = append(s.Grains, g.grain)
		s.Roots, s.Inputs = s.Roots+g.roots, s.Inputs+g.inputs
		if len(g.blocks) == 0 {
			s.First += g.inputs
			continue
		}
		s.First, s.Edges = s.First+g.blocks[0].Targets, s.Edges+g.blocks[0].Entries
	}
	return s
}

// bytes returns about the size of all edges and features.
func (j *job) bytes() (sum uint64) {
	for i := range j.Graph.Sizes {
		z := &j.Graph.Sizes[i]
		sum += uint64(z.Size(true, false)) + uint64(j.counter.row*float64(z.Vertices))
	}
	return sum
}

// edgesOfOthers returns the bytes of the edges that the node with fewest shards lacks.
func (j *job) edgesOfOthers(m *mesh) (most uint64) {
	all, by := uint64(0), make([]uint64, m.layout.Nodes)
	per := float64(len(m.layout.Owners)) / float64(len(j.Graph.Sizes))
	for shard := range m.layout.Owners {
		of := &j.Graph.Sizes[int(float64(shard)/per)]
		bytes := uint64(float64(of.Size(true, false)) / per)
		all += bytes
		for node := range by {
			if m.holds[node][shard] {
				by[node] += bytes
			}
		}
	}
	for _, held := range by {
		most = max(most, all-held)
	}
	return most
}

// sharded reports whether nodes ask each other for neighbours, as replica decides it.
func sharded(s *strategy.Settings, edges, memory uint64) bool {
	switch s.Topology() {
	case strategy.Sharded:
		return true
	case strategy.Replicated:
		return false
	}
	return memory > 0 && edges > memory/2
}
