package node

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/jobs/control"
	"github.com/hopmesh/hopmesh/node/member"
	"github.com/hopmesh/hopmesh/node/wording"
)

// Backend is what the node offers through its API.
func (n *Node) Backend() api.Backend { return backend{n} }

// backend implements the API. Reads are answered from local state, with a leader or
// without.
type backend struct{ node *Node }

var _ api.Backend = backend{}

// in returns the parts of a member, or an error if the node is in no mesh.
func (b backend) in() (*parts, error) {
	if p := b.node.parts.Load(); p != nil {
		return p, nil
	}
	if b.node.rejoining.Load() != nil {
		return nil, api.Unavailable("%s", b.outside())
	}
	return nil, api.Unavailable("this node is in no mesh: run `hopmesh join HOST:PORT --token TOKEN`, with what `hopmesh token create` prints on a member")
}

// asked calls do with the parts of a member, or returns an error if the node is in no mesh.
// Errors are worded for users.
func asked[T any](b backend, do func(p *parts) (T, error)) (T, error) {
	p, err := b.in()
	if err != nil {
		var none T
		return none, err
	}
	v, err := do(p)
	return v, wording.Error(err)
}

// called is asked for calls that return only an error.
func called(b backend, do func(p *parts) error) error {
	p, err := b.in()
	if err != nil {
		return err
	}
	return wording.Error(do(p))
}

func (b backend) Vitals(ctx context.Context) ([]api.NodeVitals, error) {
	return asked(b, func(p *parts) ([]api.NodeVitals, error) {
		names := map[string]string{}
		for id, m := range p.member.Plan().State().Members {
			names[id] = m.Name
		}
		return p.vitals.All(ctx, names), nil
	})
}

func (b backend) Plan(context.Context) (api.Plan, error) {
	in, err := b.in()
	if err != nil {
		return api.Plan{}, err
	}
	c := in.member.Plan()
	s, leader := c.State(), c.Leader()
	p := api.Plan{
		Index: s.Index, Generation: s.Generation, MeshID: s.MeshID, Leader: s.NameOf(leader), Tokens: len(s.Tokens),
		Key: api.PlanKey{Serial: s.Key.Serial, Rotating: s.Key.Previous != "" || s.Key.Stale}, Digest: s.Digest(), Needs: int(s.Needed()),
	}
	servers := map[string]plan.Server{}
	for _, server := range c.Servers() {
		servers[server.ID] = server
	}
	for id, x := range s.Members {
		p.Members = append(p.Members, api.PlanMember{
			ID: id, Name: x.Name, Role: member.Role(servers[id], leader), Device: x.Device, Version: x.Version, Memory: x.Memory, Leaving: x.Leaving,
		})
	}
	slices.SortFunc(p.Members, func(a, b api.PlanMember) int { return cmp.Compare(a.Name, b.Name) })
	for id, g := range s.Gone {
		p.Gone = append(p.Gone, api.PlanGone{ID: id, Name: g.Name, Why: string(g.Why)})
	}
	p.Jobs = control.Summaries(s, func(plan.Job) bool { return true })
	for i := range p.Jobs {
		p.Jobs[i].Owners = s.Jobs[p.Jobs[i].ID].Owners
	}
	slices.SortFunc(p.Gone, func(a, b api.PlanGone) int { return cmp.Compare(a.ID, b.ID) })
	return p, nil
}

// Join lets a node that is in no mesh join one.
func (b backend) Join(ctx context.Context, r api.JoinRequest) error {
	if b.node.parts.Load() != nil || b.node.rejoining.Load() != nil {
		return api.Conflict("this node is in a mesh already: `hopmesh leave` ends that")
	}
	return wording.Error(b.node.entrance.Join(ctx, r))
}

func (b backend) Members(context.Context) ([]api.Member, error) {
	return asked(b, func(p *parts) ([]api.Member, error) { return p.member.List(), nil })
}

func (b backend) Tokens(context.Context) ([]api.TokenInfo, error) {
	return asked(b, func(p *parts) ([]api.TokenInfo, error) { return p.member.Tokens(), nil })
}

func (b backend) Leave(ctx context.Context) error {
	return called(b, func(p *parts) error { return p.member.Leave(ctx) })
}

func (b backend) ForceLeave(ctx context.Context, r api.ForceLeaveRequest) (api.ForcedOut, error) {
	return asked(b, func(p *parts) (api.ForcedOut, error) { return p.member.ForceLeave(ctx, r) })
}

func (b backend) CreateToken(ctx context.Context, ttl time.Duration, uses uint64) (api.Token, error) {
	return asked(b, func(p *parts) (api.Token, error) { return p.member.CreateToken(ctx, ttl, uses) })
}

func (b backend) CA(ctx context.Context) (api.CA, error) {
	return asked(b, func(p *parts) (api.CA, error) { return p.member.CA(ctx) })
}

func (b backend) RotateCA(ctx context.Context) (api.CA, error) {
	return asked(b, func(p *parts) (api.CA, error) { return p.member.RotateCA(ctx) })
}

func (b backend) RevokeToken(ctx context.Context, id string) error {
	return called(b, func(p *parts) error { return p.member.RevokeToken(ctx, id) })
}

func (b backend) Access(context.Context) ([]api.AccessInfo, error) {
	return asked(b, func(p *parts) ([]api.AccessInfo, error) { return p.access.List(), nil })
}

func (b backend) GrantAccess(ctx context.Context, r api.AccessRequest) (api.AccessToken, error) {
	return asked(b, func(p *parts) (api.AccessToken, error) { return p.access.Create(ctx, r) })
}

func (b backend) RevokeAccess(ctx context.Context, id string) error {
	return called(b, func(p *parts) error { return p.access.Revoke(ctx, id) })
}

func (b backend) Scope(token string) (string, error) {
	return asked(b, func(p *parts) (string, error) { return p.access.Scope(token) })
}

func (b backend) Datasets(context.Context) ([]api.DatasetSummary, error) {
	return asked(b, func(p *parts) ([]api.DatasetSummary, error) { return p.data.List(), nil })
}

func (b backend) Dataset(_ context.Context, name string) (api.Dataset, error) {
	return asked(b, func(p *parts) (api.Dataset, error) { return p.data.Show(name) })
}

func (b backend) ImportDataset(ctx context.Context, r api.ImportRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return asked(b, func(p *parts) (api.Dataset, error) { return p.data.Import(ctx, r, worded(tell)) })
}

func (b backend) GenerateDataset(ctx context.Context, r api.GenerateRequest, tell func(api.DatasetEvent)) (api.Dataset, error) {
	return asked(b, func(p *parts) (api.Dataset, error) { return p.data.Generate(ctx, r, worded(tell)) })
}

// worded returns a function that words the notes of an import for users.
func worded(tell func(api.DatasetEvent)) func(api.DatasetEvent) {
	return func(e api.DatasetEvent) {
		e.Note = wording.Text(e.Note)
		tell(e)
	}
}

func (b backend) VerifyDataset(ctx context.Context, name string, tell func(api.DatasetEvent)) error {
	return called(b, func(p *parts) error { return p.data.Verify(ctx, name, tell) })
}

func (b backend) RemoveDataset(ctx context.Context, name string, force bool) error {
	return called(b, func(p *parts) error { return p.data.Remove(ctx, name, force) })
}

func (b backend) StartJob(ctx context.Context, r api.TrainRequest) (string, error) {
	return asked(b, func(p *parts) (string, error) { return p.jobs.Start(ctx, r) })
}

func (b backend) Jobs(context.Context) ([]api.JobSummary, error) {
	return asked(b, func(p *parts) ([]api.JobSummary, error) { return p.jobs.List(), nil })
}

func (b backend) Job(ctx context.Context, id string) (api.Job, error) {
	return asked(b, func(p *parts) (api.Job, error) { return p.jobs.Show(ctx, id) })
}

func (b backend) WatchJob(ctx context.Context, id string, tell func(api.JobEvent)) (api.Job, error) {
	return asked(b, func(p *parts) (api.Job, error) { return p.jobs.Watch(ctx, id, tell) })
}

func (b backend) StopJob(ctx context.Context, id string) error {
	return called(b, func(p *parts) error { return p.jobs.Stop(ctx, id) })
}

func (b backend) ResumeJob(ctx context.Context, id string, r api.ResumeRequest) error {
	return called(b, func(p *parts) error { return p.jobs.Resume(ctx, id, r) })
}

func (b backend) RemoveJob(ctx context.Context, id string) error {
	return called(b, func(p *parts) error { return p.jobs.Remove(ctx, id) })
}

func (b backend) Attach(ctx context.Context, id string) (api.Attachment, error) {
	return asked(b, func(p *parts) (api.Attachment, error) { return p.jobs.Attach(ctx, id) })
}

func (b backend) RunScript(ctx context.Context, r api.RunRequest, tell func(api.RunEvent)) (api.RunDone, error) {
	return asked(b, func(p *parts) (api.RunDone, error) { return p.scripts.Start(ctx, r, tell) })
}

func (b backend) Predict(ctx context.Context, id string, r api.PredictRequest, to io.Writer) error {
	return called(b, func(p *parts) error { return p.models.Predict(ctx, id, r, to) })
}

func (b backend) Evaluate(ctx context.Context, id string, r api.EvaluateRequest) (api.Evaluation, error) {
	return asked(b, func(p *parts) (api.Evaluation, error) { return p.models.Evaluate(ctx, id, r) })
}

func (b backend) ExportJob(ctx context.Context, id string, r api.ExportRequest, to io.Writer) error {
	return called(b, func(p *parts) error { return p.models.Export(ctx, id, r, to) })
}

func (b backend) Forecast(ctx context.Context, r api.ForecastRequest, tell func(api.ForecastRow)) (api.JobForecast, error) {
	return asked(b, func(p *parts) (api.JobForecast, error) { return p.forecasts.Forecast(ctx, r, tell) })
}

func (b backend) Backup(ctx context.Context, r api.BackupRequest, to io.Writer, tell func(api.Backup) error) error {
	return called(b, func(p *parts) error { return p.backups.Write(ctx, r, to, tell) })
}

func (b backend) Events(ctx context.Context) <-chan api.Event { return b.node.events.Listen(ctx) }

func (b backend) Logs(ctx context.Context, level slog.Level) <-chan api.LogLine {
	out := make(chan api.LogLine)
	in := b.node.logs.Listen(ctx)
	go func() {
		defer close(out)
		for l := range in {
			if l.Level < level {
				continue
			}
			select {
			case out <- l.Line:
			case <-ctx.Done():
			}
		}
	}()
	return out
}
