package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// Ask sends a question to one node's Server and returns the answer, of at most MaxAnswer
// bytes.
type Ask func(ctx context.Context, question []byte) ([]byte, error)

var _ tabular.Far = Ask(nil)

// Look describes a source on the other node. labels are the names of the columns of labels.
func (a Ask) Look(ctx context.Context, path, format string, labels []string) (tabular.Look, error) {
	var look tabular.Look
	b, err := a.do(ctx, question{Do: doLook, Query: tabular.Query{Path: path, Format: format, LabelColumns: labels}})
	if err != nil {
		return look, err
	}
	if len(b) > maxLook {
		return look, errAnswer
	}
	if err := json.Unmarshal(b, &look); err != nil {
		return look, errAnswer
	}
	return look, nil
}

// Scan yields the rows of a table on the other node.
func (a Ask) Scan(ctx context.Context, q tabular.Query, yield func([]byte) error) error {
	b, err := a.do(ctx, question{Do: doScan, Query: q})
	if err != nil {
		return err
	}
	var id uint64
	if err := json.Unmarshal(b, &id); err != nil {
		return errAnswer
	}
	for n := uint64(1); ; n++ {
		b, err := a.next(ctx, question{Do: doNext, Stream: id, Number: n})
		if err == nil {
			err = yield(b)
		}
		if err != nil {
			// It would end by itself, but later.
			a.stop(ctx, id)
			if errors.Is(err, errEnd) {
				return nil
			}
			return err
		}
	}
}

// next asks for a batch, again if the question or its answer was lost.
func (a Ask) next(ctx context.Context, q question) ([]byte, error) {
	for wait := askAgain; ; wait *= 4 {
		b, err := a.do(ctx, q)
		if !errors.As(err, new(lost)) || wait > askLast {
			return b, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// A lost is the error of a question that got no answer.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// The pauses before a question is repeated.
const (
	askAgain = 100 * time.Millisecond
	askLast  = time.Second
)

// stop ends a stream, also if ctx has ended.
func (a Ask) stop(ctx context.Context, id uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	_, _ = a.do(ctx, question{Do: doStop, Stream: id})
}

const stopTimeout = 3 * time.Second

var (
	errAnswer = errors.New("the other node's answer can't be understood: run the same version on all nodes")
	errEnd    = errors.New("no more rows")
)

func (a Ask) do(ctx context.Context, q question) ([]byte, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("write a question: %w", err)
	}
	b, err := a(ctx, body)
	if err != nil {
		return nil, lost{err}
	}
	if len(b) == 0 {
		return nil, errAnswer
	}
	switch b[0] {
	case isAnswer:
		return b[1:], nil
	case isEnd:
		return nil, errEnd
	case isNotInteger:
		return nil, tabular.NotInteger()
	case isFraction:
		return nil, tabular.Fraction()
	case isError:
		return nil, errors.New(source.Printable(string(b[1:min(len(b), 1+maxSentence)])))
	}
	return nil, errAnswer
}
