package gather

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// An ask is the questions to a node in one round.
type ask struct {
	source *Source
	rows   *Rows
	round  int
	node   int
	first  int // row, in order of arrival
	count  int

	ctx   context.Context
	query peer.Query
	err   error
	// answers are those of sparse rows, in order, in memory that is reused; given are
	// of the last question.
	answers [][]byte
	given   int
	do      func() // run, bound once
}

// add adds a question to r.
func (s *Source) add(r *Rows, round, node, first, count int) {
	if r.used == len(r.asks) {
		a := &ask{rows: r}
		a.do = func() {
			defer a.rows.wait.Done()
			a.run()
		}
		r.asks = append(r.asks, a)
	}
	a := r.asks[r.used]
	a.source, a.round, a.node, a.first, a.count = s, round, node, first, count
	r.used++
}

// bring asks the planned questions, those of a round at once, and sets r.Far.
func (s *Source) bring(ctx context.Context, r *Rows, q peer.Query) error {
	if s.form.Sparse() {
		r.Far.Clear(s.form)
	} else {
		r.dense = nil // it may be given up for a larger one
		r.dense = r.Far.Room(s.form, r.Remote)
	}
	for asks := r.asks[:r.used]; len(asks) > 0; {
		n := 1
		for n < len(asks) && asks[n].round == asks[0].round {
			n++
		}
		if err := r.together(ctx, asks[:n], q); err != nil {
			return err
		}
		for _, a := range asks[:n] {
			if err := a.take(); err != nil {
				return err
			}
		}
		asks = asks[n:]
	}
	return nil
}

// together asks several nodes. The first error cancels all.
func (r *Rows) together(ctx context.Context, asks []*ask, q peer.Query) error {
	if len(asks) > 1 {
		ctx = r.until.under(ctx)
	}
	for _, a := range asks {
		a.ctx, a.query, a.err = ctx, q, nil
	}
	last := len(asks) - 1
	r.wait.Add(last)
	for _, a := range asks[:last] {
		go a.do()
	}
	asks[last].run()
	r.wait.Wait()
	if last > 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return asks[last].err
}

// run requests all rows, in as many questions as it takes.
func (a *ask) run() {
	a.given = 0
	if a.err = a.askAll(); a.err != nil {
		a.rows.until.end(a.err)
	}
	a.query.Body, a.ctx = nil, nil
}

func (a *ask) askAll() error {
	form, most := a.source.form, a.source.most
	for done := 0; done < a.count; {
		n := min(a.count-done, most.question/4)
		if !form.Sparse() {
			n = min(n, most.answer/form.RowBytes())
		}
		a.query.Body = a.rows.plan.body[4*(a.first+done):][:4*n]
		a.query.Limit = min(n*form.RowBytes(), most.answer)
		if form.Sparse() {
			var err error
			if n, err = a.sparse(n); err != nil {
				return err
			}
		} else if err := a.dense(a.first+done, n); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// dense requests n dense rows, which are received in place.
func (a *ask) dense(row, n int) error {
	bytes := a.source.form.RowBytes()
	to := a.rows.dense[row*bytes:][: n*bytes : n*bytes]
	got, err := a.source.peers.Ask(a.ctx, a.node, a.query, to)
	switch {
	case err != nil:
		return err
	case len(got) != len(to):
		return a.wrong(fmt.Errorf("it has %d bytes where %d rows take %d", len(got), n, len(to)))
	case unsafe.SliceData(got) != unsafe.SliceData(to):
		copy(to, got)
	}
	return nil
}

// sparse requests n sparse rows and returns how many came, at least one.
func (a *ask) sparse(n int) (int, error) {
	if a.given == len(a.answers) {
		a.answers = append(a.answers, nil)
	}
	got, err := a.source.peers.Ask(a.ctx, a.node, a.query, a.answers[a.given])
	if err != nil {
		return 0, err
	}
	if len(got) > a.query.Limit {
		return 0, a.wrong(fmt.Errorf("it has %d bytes, over the limit of %d", len(got), a.query.Limit))
	}
	rows, err := a.source.form.Count(got, n)
	if err == nil && rows == 0 {
		err = errors.New("it has no row")
	}
	if err != nil {
		return 0, a.wrong(err)
	}
	a.answers[a.given] = got
	a.given++
	return rows, nil
}

// take appends sparse rows to those that came before.
func (a *ask) take() error {
	for _, answer := range a.answers[:a.given] {
		if err := a.rows.Far.Take(a.source.form, answer); err != nil {
			return a.wrong(err)
		}
	}
	return nil
}

func (a *ask) wrong(err error) error {
	return fmt.Errorf("the answer of node %s is wrong: %w", a.source.work.Nodes[a.node], err)
}

// An until is a context that ends when another does, or when one of several questions
// fails. It is kept as long as neither happens, so that steps do not allocate.
type until struct {
	of, ctx context.Context
	cancel  context.CancelCauseFunc
}

func (u *until) under(ctx context.Context) context.Context {
	if u.of == ctx && u.ctx.Err() == nil {
		return u.ctx
	}
	if u.cancel != nil {
		u.cancel(nil)
	}
	u.of = ctx
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	return u.ctx
}

func (u *until) end(err error) {
	if u.cancel != nil {
		u.cancel(err)
	}
}
