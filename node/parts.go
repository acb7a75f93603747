package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/peer"
	trains "github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/access"
	"github.com/hopmesh/hopmesh/node/backup"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/data"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/jobs/control"
	"github.com/hopmesh/hopmesh/node/jobs/forecast"
	"github.com/hopmesh/hopmesh/node/jobs/model"
	"github.com/hopmesh/hopmesh/node/jobs/recipe"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/member"
	"github.com/hopmesh/hopmesh/node/peers"
	"github.com/hopmesh/hopmesh/node/scripts"
	"github.com/hopmesh/hopmesh/node/tensorboard"
	"github.com/hopmesh/hopmesh/node/vitals"
	"golang.org/x/sync/errgroup"
)

// parts are the components of a node while it belongs to a mesh.
type parts struct {
	member *member.Member
	data   *data.Datasets
	peers  *peers.Registry // the sessions of jobs with other nodes
	runner *jobs.Runner
	jobs   *control.Jobs
	models *model.Models
	// forecasts forecasts jobs on meshes of other sizes.
	forecasts *forecast.Forecaster
	// eventFiles writes event files for TensorBoard; nil: none are wanted.
	eventFiles *tensorboard.Writer
	backups    *backup.Maker
	scripts    *scripts.Scripts
	vitals     *vitals.Vitals
	access     *access.Tokens
	id         *identity.Identity
	// damage holds what this node and others found damaged. Any part may report to it.
	damage *damage.Board
}

// open connects the parts. All handlers are registered before any request is answered.
func (n *Node) open(dir *member.Dir, conn net.PacketConn, id *identity.Identity, start member.Start) (*parts, error) {
	o, log := &n.opts, n.log.With("node", id.Name())
	rounds := lead.NewRounds(log)
	p := &parts{damage: n.damage, id: id}
	var err error
	p.member, err = member.Open(member.Config{
		Dir: dir, Conn: conn, ID: id, Start: start, About: o.about(), Advertise: o.Advertise, Join: o.Join, Stores: o.Stores, Damage: n.damage,
		Round: rounds.Round, Say: n.say, Ready: n.ready(id, start), Log: log,
	})
	if err != nil {
		return nil, err
	}
	network, state, orders, answers := p.member.Mesh(), p.member.Plan(), p.member.Orders(), p.member.Answers
	absences := lead.NewAbsences(state.Term, p.member.Health)
	apart := lead.NewApart(network, state, answers, log)
	leftOut := func(d plan.Dataset) func(id string) bool {
		return control.LeftOut(state.State(), d, answers, apart.LeftOut(d))
	}
	p.data = data.New(data.Config{
		Dir: dir.Datasets(), Memory: o.Memory, Mesh: network, Plan: state, Orders: orders,
		Answers: answers, Absent: absences.Of, LeftOut: leftOut, Damage: n.damage, Log: log,
	})
	jobOrders := control.Register(orders, state, apart, answers, control.Program{Version: o.Version, Computes: o.computing(), Knows: member.Knows(o.Numbers)}, log)
	p.access = access.Register(orders, id, state, log)
	p.peers = peers.New(network, log)
	p.runner = jobs.Open(jobs.Config{
		Dir: dir.Jobs(), Self: id.ID(), Memory: o.Memory, Device: o.computes(), Shard: p.data.ShardFile, Files: p.data.Keeper, Leader: jobOrders, Train: o.Train, Log: log,
		Peers: p.meet, Strategies: recipe.Strategies, Damage: n.damage,
		Weights: func(ctx context.Context, from trains.From) ([]float32, error) { return p.models.Weights(ctx, from) },
	})
	p.jobs = control.New(control.Config{
		Name: id.Name(), Mesh: network, Plan: state, Leader: orders, Orders: jobOrders, Apart: apart, Runner: p.runner, Waits: p.peers.Waits,
		Source:  func(ctx context.Context, id string) (*recipe.Source, error) { return p.models.Source(ctx, id) },
		Answers: answers, Log: log,
	})
	p.models = model.New(model.Config{
		Dir: dir.Jobs(), Name: id.Name(), Memory: o.Memory, Device: o.computes(), Mesh: network, Plan: state, Shards: p.data.Keeper, Runner: p.runner,
		Find: p.jobs.Find, Dataset: p.jobs.Dataset, Answers: answers, ShardFile: p.data.ShardFile, Damage: n.damage, Log: log,
	})
	p.forecasts = forecast.New(forecast.Config{
		Dir: dir.Jobs(), Self: id.ID(), Version: o.Version, Plan: state, Shards: p.data.Keeper, ShardFile: p.data.ShardFile, Log: log,
	})
	if o.LogDir != "" {
		p.eventFiles = tensorboard.New(tensorboard.Config{Dir: o.LogDir, Name: id.Name(), Plan: state, Log: log})
	}
	p.backups = backup.New(backup.Config{
		Version: o.Version, Identity: id, Plan: state, Shards: p.data.Keeper, ShardFile: p.data.ShardFile, JobFolder: p.runner.Folder, Dir: dir.Jobs(),
		Answers: answers, Log: log,
	})
	p.scripts = scripts.New(o.scripts(dir, p, log))
	p.vitals = vitals.New(network, o.Memory)
	p.damage.Serve(network)
	p.serveBulk()
	roster := p.member.Roster()
	rounds.Begin(state.State, append([]lead.Step{
		roster.Meet, roster.TakeBack, roster.DropReaped, p.data.Placement.Place, jobOrders.Assign, roster.LetGo(p.data.Placement.MayGo), roster.TurnKey,
		roster.TurnCA, roster.Compare,
	}, trials(state)...)...)
	p.member.Begin(func(s *plan.State) {
		p.data.Keeper.Adopt(s)
		p.runner.Adopt(s)
	})
	return p, nil
}

// run runs all parts until ctx ends. It returns an error if the node can't go on before.
func (p *parts) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.member.Run(ctx) })
	g.Go(func() error { return p.data.Run(ctx) })
	g.Go(func() error { return p.runner.Run(ctx) })
	g.Go(func() error { return p.models.Run(ctx) })
	g.Go(func() error { return p.forecasts.Run(ctx) })
	g.Go(func() error { return p.backups.Run(ctx) })
	g.Go(func() error { return p.scripts.Run(ctx) })
	g.Go(func() error { return p.damage.Run(ctx, p.member.Mesh()) })
	if p.eventFiles != nil {
		g.Go(func() error { return p.eventFiles.Run(ctx) })
	}
	return g.Wait()
}

// serveBulk registers the handlers of bulk requests. Requests of one kind are
// distinguished by their flags, here and nowhere else.
func (p *parts) serveBulk() {
	for _, kind := range peers.Kinds() {
		p.member.Mesh().HandleBulk(kind, func(ctx context.Context, r *mesh.Request) error {
			switch {
			case r.Flags == peers.Flag:
				return p.peers.Serve(ctx, r.Peer, r.Header, r)
			case r.Flags == model.Flag && kind == mesh.Model:
				return p.models.Serve(ctx, r)
			case r.Flags == data.SourceFlag && kind == mesh.Shard:
				return p.data.ServeSource(ctx, r)
			case r.Flags == data.MakeFlag && kind == mesh.Shard:
				return p.data.ServeMaker(ctx, r)
			case r.Flags == 0 && kind == mesh.Shard:
				return p.data.Keeper.Serve(ctx, r.Peer, r.Length, r)
			}
			return fmt.Errorf("%w: %s with flags %x", mesh.ErrProtocol, kind, r.Flags)
		})
	}
}

// meet opens the session of a job in its generation, for the runner.
func (p *parts) meet(j plan.Job, names []string, self int) (peer.Peers, func(cause error)) {
	s := p.peers.Open(j.Key, j.Generation, j.Nodes, names, self)
	return s, s.Close
}

// ready returns the function that the member calls when it is in the plan and knows a leader.
func (n *Node) ready(id *identity.Identity, start member.Start) func(addr netip.AddrPort) {
	return func(addr netip.AddrPort) {
		if n.opts.OnReady != nil {
			n.opts.OnReady(Ready{ID: id.ID(), Name: id.Name(), MeshID: id.MeshID(), Addr: addr, Founded: start.Founded})
		}
	}
}
