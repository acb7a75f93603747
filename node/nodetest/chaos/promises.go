package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

// asked is what is asked of a node, here or in another process.
type asked interface {
	Leave(ctx context.Context) error
	ForceLeave(ctx context.Context, r api.ForceLeaveRequest) (api.ForcedOut, error)
	CreateToken(ctx context.Context, ttl time.Duration, uses uint64) (api.Token, error)
	Tokens(ctx context.Context) ([]api.TokenInfo, error)
	RotateCA(ctx context.Context) (api.CA, error)
	CA(ctx context.Context) (api.CA, error)
	ImportDataset(ctx context.Context, r api.ImportRequest, tell func(api.DatasetEvent)) (api.Dataset, error)
	GenerateDataset(ctx context.Context, r api.GenerateRequest, tell func(api.DatasetEvent)) (api.Dataset, error)
	Dataset(ctx context.Context, name string) (api.Dataset, error)
	RemoveDataset(ctx context.Context, name string, force bool) error
	StartJob(ctx context.Context, r api.TrainRequest) (id string, err error)
	Job(ctx context.Context, id string) (api.Job, error)
	StopJob(ctx context.Context, id string) error
}

// promises are what a mesh has acknowledged, so that it must hold from then on.
type promises struct {
	mu       sync.Mutex // questions under way add to what follows
	fickle   bool       // any token may end
	tokens   map[string]bool
	datasets map[string]bool // true: it must be there
	jobs     map[string]bool
}

func noPromises() *promises {
	return &promises{tokens: map[string]bool{}, datasets: map[string]bool{}, jobs: map[string]bool{}}
}

func (p *promises) promise(m map[string]bool, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sure, known := m[what]; !known || sure {
		m[what] = true
	}
}

// doubt takes a promise back: somebody has asked for the contrary.
func (p *promises) doubt(m map[string]bool, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m[what] = false
}

// endTokens does what may end any token that was made before: those that are there when it is
// asked for, and those that are made until it is done. If nobody says that it is, those that are
// made later may end as well.
func (p *promises) endTokens(do func() error) {
	p.doubtTokens(false)
	err := do()
	p.doubtTokens(err != nil)
}

func (p *promises) doubtTokens(later bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fickle = p.fickle || later
	for id := range p.tokens {
		p.tokens[id] = false
	}
}

// promiseToken is promise of a token.
func (p *promises) promiseToken(id string) {
	p.promise(p.tokens, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fickle {
		p.tokens[id] = false
	}
}

// doubted reports whether a token may be gone.
func (p *promises) doubted(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.tokens[token]
}

// question returns what is asked of a node by a fault of that kind, and notes what the answer
// promises; nil: nothing now. Imports read the folder source.
func (p *promises) question(kind, source string) func(ctx context.Context, b asked) {
	switch kind {
	case token:
		return func(ctx context.Context, b asked) {
			if t, err := b.CreateToken(ctx, 0, 0); err == nil {
				p.promiseToken(t.ID)
			}
		}
	case rotate:
		return func(ctx context.Context, b asked) {
			p.endTokens(func() error { // those that pin the former CA end with it
				_, err := b.RotateCA(ctx)
				return err
			})
		}
	case generate:
		return func(ctx context.Context, b asked) {
			if d, err := b.GenerateDataset(ctx, small("more"), func(api.DatasetEvent) {}); err == nil {
				p.promise(p.datasets, d.Name)
			}
		}
	case load:
		return func(ctx context.Context, b asked) {
			r := api.ImportRequest{Name: "loaded", Source: source, DatasetOptions: small("").DatasetOptions}
			if d, err := b.ImportDataset(ctx, r, func(api.DatasetEvent) {}); err == nil {
				p.promise(p.datasets, d.Name)
			}
		}
	case remove:
		return func(ctx context.Context, b asked) {
			p.doubt(p.datasets, "more")
			_ = b.RemoveDataset(ctx, "more", true)
		}
	case train:
		return func(ctx context.Context, b asked) {
			r := long("") // as nodes choose
			few := 2
			r.Epochs = &few
			if id, err := b.StartJob(ctx, r); err == nil {
				p.promise(p.jobs, id)
			}
		}
	case cancel:
		p.mu.Lock()
		defer p.mu.Unlock()
		for id := range p.jobs {
			return func(ctx context.Context, b asked) { _ = b.StopJob(ctx, id) }
		}
	}
	return nil
}

// succeeded reports whether the former CA has ended. It waits for nodes that do not run.
func succeeded(ctx context.Context, b asked, running func(name string) bool) bool {
	ca, err := b.CA(ctx)
	return err == nil && (!ca.Replacing || slices.ContainsFunc(ca.Waiting, func(name string) bool { return !running(name) }))
}

// kept returns an error unless a node knows all that was promised.
func (p *promises) kept(ctx context.Context, b asked) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	infos, err := b.Tokens(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	tokens := map[string]bool{}
	for _, i := range infos {
		tokens[i.ID] = true
		if i.Uses != nil && (i.Used > *i.Uses || uint64(len(i.Nodes)) > *i.Uses) {
			wrong = append(wrong, fmt.Errorf("token %s was for %d nodes, and %d joined by it: %v", i.ID, *i.Uses, i.Used, i.Nodes))
		}
	}
	for id, sure := range p.tokens {
		if sure && !tokens[id] {
			wrong = append(wrong, fmt.Errorf("token %s was acknowledged, and is gone", id))
		}
	}
	for name, sure := range p.datasets {
		if _, err := b.Dataset(ctx, name); sure && err != nil {
			wrong = append(wrong, fmt.Errorf("dataset %s was acknowledged, and is gone: %w", name, err))
		}
	}
	for id := range p.jobs {
		if _, err := b.Job(ctx, id); err != nil {
			wrong = append(wrong, fmt.Errorf("job %s was acknowledged, and is gone: %w", id, err))
		}
	}
	return errors.Join(wrong...)
}
