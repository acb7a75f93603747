// Package remote reads tables for another node, and from another node: a Server
// answers questions on the files of its machine, and Ask puts them.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

const (
	// MaxQuestion and MaxAnswer bound what travels at once, in bytes.
	MaxQuestion = 64 << 10
	MaxAnswer   = 96 << 20

	maxStreams  = 64
	maxLooks    = 2
	maxSentence = 4 << 10
	maxLook     = 1 << 20
	ahead       = 2                // batches that are ready before they are asked for
	idle        = 5 * time.Minute  // how long a stream waits for a question
	turn        = 10 * time.Second // how long a look waits for others, less than a question does

	leastHeld, mostHeld = 32 << 20, 256 << 20 // bytes of a stream
)

// What a question asks for.
const (
	doLook = "look"
	doScan = "scan"
	doNext = "next"
	doStop = "stop"
)

type question struct {
	Do     string
	Query  tabular.Query // of look, its path, format and columns of labels, and of scan
	Stream uint64        // of next and stop
	Number uint64        // of next, from 1
}

// The first byte of an answer says what follows.
const (
	isAnswer = iota
	isEnd
	isNotInteger
	isError // a sentence
	isFraction
)

// A Server reads tables for other nodes. Its methods may be called from any goroutine.
type Server struct {
	format  func(path, format string) (string, error)
	limit   uint64        // bytes that a stream may hold
	most    int           // streams
	looking chan struct{} // has room for those who look at sources
	look    uint64        // bytes that one of them may hold

	mu      sync.Mutex
	streams map[uint64]*stream
	last    uint64
	closed  bool
	running sync.WaitGroup
}

// NewServer makes a Server whose streams may hold about a quarter of memory, 0 for 16 GiB.
// format returns the format of the source at a path, "csv" or "parquet", or an error that
// refuses it.
func NewServer(memory uint64, format func(path, format string) (string, error)) *Server {
	all := uint64(maxStreams * mostHeld)
	if memory > 0 {
		all = min(all, memory/4)
	}
	limit := min(max(all/8, leastHeld), mostHeld)
	return &Server{
		format: format, limit: limit, most: int(min(max(all/limit, 2), maxStreams)), streams: map[uint64]*stream{},
		looking: make(chan struct{}, maxLooks), look: min(max(all, leastHeld), mostHeld),
		last: rand.Uint64() >> 16, // so that no answer of before a restart fits
	}
}

// Close ends all streams and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for _, st := range s.streams {
		st.cancel()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Answer answers a question of a peer. An error of the source is part of the answer.
func (s *Server) Answer(ctx context.Context, peer string, body []byte) []byte {
	b, err := s.answer(ctx, peer, body)
	switch {
	case err == nil:
		return b
	case errors.Is(err, errEnd):
		return []byte{isEnd}
	case tabular.IsNotInteger(err):
		return []byte{isNotInteger}
	case tabular.IsFraction(err):
		return []byte{isFraction}
	}
	text := err.Error()
	return append([]byte{isError}, text[:min(len(text), maxSentence)]...)
}

func (s *Server) answer(ctx context.Context, peer string, body []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, errors.New("the question can't be understood: run the same version on all nodes")
	}
	if (q.Do == doLook || q.Do == doScan) && !filepath.IsAbs(q.Query.Path) {
		return nil, fmt.Errorf("the source %.200q is no absolute path: the daemon has a working directory of its own", q.Query.Path)
	}
	switch q.Do {
	case doLook:
		select {
		case s.looking <- struct{}{}:
			defer func() { <-s.looking }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(turn):
			return nil, fmt.Errorf("for %s the node has been looking at sources of other imports: import again later, or restart the node if their disk hangs", turn)
		}
		format, err := s.format(q.Query.Path, q.Query.Format)
		if err != nil {
			return nil, err
		}
		look, err := tabular.LookAt(ctx, q.Query.Path, format, q.Query.LabelColumns, s.look)
		if err != nil {
			return nil, err
		}
		return encoded(look)
	case doScan:
		id, err := s.begin(peer, q.Query)
		if err != nil {
			return nil, err
		}
		return encoded(id)
	case doNext, doStop:
		s.mu.Lock()
		st := s.streams[q.Stream]
		s.mu.Unlock()
		if st == nil || st.peer != peer {
			return nil, errGone
		}
		if q.Do == doStop {
			st.cancel()
			return []byte{isAnswer}, nil
		}
		return st.next(ctx, q.Number)
	}
	return nil, fmt.Errorf("the question %.20q is not known: run the same version on all nodes", q.Do)
}

func encoded(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append([]byte{isAnswer}, b...), err
}

var errGone = errors.New("the reading was given up, since it waited too long or the node was restarted: import again")

// A stream is one pass over a table. Its goroutine reads ahead of the questions.
type stream struct {
	peer    string
	cancel  context.CancelFunc
	batches chan []byte
	end     chan struct{} // closed when err is set
	err     error         // why there are no more batches

	mu     sync.Mutex
	timer  *time.Timer
	number uint64 // of the last answer
	answer []byte
	failed error
}

func (s *Server) begin(peer string, q tabular.Query) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errors.New("the node is stopping")
	}
	if len(s.streams) >= s.most {
		return 0, fmt.Errorf("the node reads %d tables for others already: import again when those imports have ended", s.most)
	}
	s.last++
	id := s.last
	// Not the question's context: the stream outlives it.
	ctx, cancel := context.WithCancel(context.Background())
	st := &stream{peer: peer, cancel: cancel, batches: make(chan []byte, ahead), end: make(chan struct{})}
	st.timer = time.AfterFunc(idle, cancel)
	s.streams[id] = st
	s.running.Go(func() {
		err := tabular.ScanPart(ctx, q, s.limit, func(b []byte) error {
			if len(b) >= MaxAnswer {
				return fmt.Errorf("rows of %d bytes are too long to be sent to another node: import on the node where they are", len(b))
			}
			select {
			case st.batches <- b:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if st.err = err; err == nil {
			st.err = errEnd
		} else if ctx.Err() != nil {
			st.err = errGone
		}
		close(st.end)
		// The last batches and the end are still to be asked for.
		<-ctx.Done()
		st.timer.Stop()
		s.mu.Lock()
		delete(s.streams, id)
		s.mu.Unlock()
	})
	return id, nil
}

// next returns the batch with this number, which is the last one again or the next.
func (st *stream) next(ctx context.Context, number uint64) ([]byte, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.timer.Reset(idle)
	switch {
	case number == 0 || number != st.number && number != st.number+1:
		return nil, fmt.Errorf("batch %d is asked for after %d", number, st.number)
	case number == st.number:
		return st.answer, st.failed
	}
	var b []byte
	select {
	case b = <-st.batches:
	case <-st.end:
		select {
		case b = <-st.batches: // was ready before the end
		default:
			st.number, st.answer, st.failed = number, nil, st.err
			return nil, st.err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	st.number, st.answer, st.failed = number, append([]byte{isAnswer}, b...), nil
	return st.answer, nil
}
