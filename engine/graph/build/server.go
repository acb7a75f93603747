package build

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
	"github.com/hopmesh/hopmesh/engine/graph/targets"
)

// A Host is what a Server needs of its node.
type Host interface {
	Self() string
	Memory() uint64 // bytes that the node may take; 0: no bound
	// Begin makes the folders of a dataset that another node is importing, or this one.
	Begin(ctx context.Context, id, from string) (Stage, error)
	// Ended notes whether a stage left something behind.
	Ended(left error)
	// Ask sends a message to the Server of a node, which may be this one.
	Ask(ctx context.Context, node string, message, into []byte) ([]byte, error)
	// Open opens a node's share of a source.
	Open(ctx context.Context, spec []byte, share, of int) (Share, error)
}

// A Stage is where a node makes its shards of a dataset.
type Stage interface {
	Folders() (shards, scratch string)
	Publish() error
	Close() error // removes what is not published
}

// A Share is what one node reads of a source. The shares of all nodes are the source.
type Share interface {
	Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error
	Features(ctx context.Context, yield func(graph.FeatureBatch) error) error
	Close() error
}

// A Picker is a Share that can yield the features of any vertices, so that none need travel.
type Picker interface {
	FeaturesOf(ctx context.Context, wanted func(vertex uint32) bool, yield func(graph.FeatureBatch) error) error
}

// A Server makes shards for imports that other nodes conduct, or this one. Its methods may
// be called from any goroutine.
type Server struct {
	host Host

	mu     sync.Mutex
	makers map[string]*maker // nil: being made
	closed bool
}

// maxMakers bounds the imports that a node takes part in at once.
const maxMakers = 16

// NewServer returns a Server.
func NewServer(host Host) *Server { return &Server{host: host, makers: map[string]*maker{}} }

// Close gives up all that is under way.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	var ids []string
	for id := range s.makers {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.drop(id)
	}
}

// Keep gives up the imports of which going reports false.
func (s *Server) Keep(going func(id string) bool) {
	s.mu.Lock()
	var ids []string
	for id, m := range s.makers {
		if m != nil && !going(id) {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.drop(id)
	}
}

func (s *Server) drop(id string) {
	s.mu.Lock()
	m := s.makers[id]
	if m != nil {
		delete(s.makers, id)
	}
	s.mu.Unlock()
	if m != nil {
		m.drop()
	}
}

// Answer answers a message of a peer, also with an error.
func (s *Server) Answer(ctx context.Context, peer string, message []byte) []byte {
	return wire.Answer(s.answer(ctx, peer, message))
}

func (s *Server) answer(ctx context.Context, peer string, in []byte) (out []byte, done bool, err error) {
	say, id, in, err := wire.Split(in)
	if err != nil {
		return nil, false, err
	}
	if say == sayOpen {
		return nil, true, s.open(ctx, peer, id, in)
	}
	s.mu.Lock()
	m := s.makers[id]
	s.mu.Unlock()
	if m == nil {
		return nil, false, errGivenUp
	}
	if peer == m.from {
		m.timer.Reset(idleMaker)
	} else if say != sayHalves && say != sayEdges && say != sayRows || !m.knows(peer) {
		return nil, false, errMessage
	}
	switch say {
	case sayPing:
		return nil, true, nil
	case sayDo:
		if len(in) != 1 {
			return nil, false, errMessage
		}
		return nil, true, m.begin(in[0])
	case sayPoll:
		return m.poll(ctx)
	case sayPublish:
		return nil, true, m.publish()
	case sayClose:
		s.drop(id)
		return nil, true, nil
	}
	out, err = m.data(say, in)
	return out, true, err
}

func (m *maker) knows(peer string) bool { return slices.Contains(m.job.Nodes, peer) }

// open makes a maker.
func (s *Server) open(ctx context.Context, peer, id string, in []byte) error {
	var j job
	if err := json.Unmarshal(in, &j); err != nil {
		return errMessage
	}
	s.mu.Lock()
	_, there := s.makers[id]
	full, closed := len(s.makers) >= maxMakers, s.closed
	if !there && !full && !closed {
		s.makers[id] = nil
	}
	s.mu.Unlock()
	switch {
	case closed:
		return errors.New("the node is stopping")
	case there:
		return fmt.Errorf("the node makes shards of dataset %s already", id)
	case full:
		return fmt.Errorf("the node takes part in %d imports already: import again when those have ended", maxMakers)
	}
	m, err := newMaker(ctx, s.host, id, peer, j)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.makers, id)
		return err
	}
	if s.closed {
		delete(s.makers, id)
		m.drop()
		return errors.New("the node is stopping")
	}
	s.makers[id] = m
	m.timer = time.AfterFunc(idleMaker, func() { s.drop(id) })
	return nil
}

// data takes what is no command.
func (m *maker) data(say byte, in []byte) ([]byte, error) {
	little := binary.LittleEndian
	switch say {
	case sayHalves:
		return nil, m.reader.Read(in, m.takeHalves)
	case sayEdges:
		return nil, m.reader.Read(in, m.takeEdges)
	case sayParts:
		part, err := wire.Elements[uint16](in)
		if err != nil {
			return nil, err
		}
		return nil, m.takeParts(part)
	case sayNumber:
		return nil, m.number()
	case sayColumn:
		if len(in) < 8 {
			return nil, errMessage
		}
		return nil, m.takeColumn(int(little.Uint32(in)), int(little.Uint32(in[4:])), in[8:])
	case sayRows:
		if len(in) < 8 {
			return nil, errMessage
		}
		n := little.Uint64(in)
		if in = in[8:]; n > uint64(len(in)/4) {
			return nil, errMessage
		}
		rows, err := wire.Elements[uint32](in[:n*4])
		if err != nil {
			return nil, err
		}
		return nil, m.takeRows(rows, in[n*4:])
	case sayRead:
		if len(in) != 16 {
			return nil, errMessage
		}
		return m.read(int64(little.Uint64(in)), little.Uint64(in[8:]))
	}
	return nil, errMessage
}

// read returns a piece of the sorted edges.
func (m *maker) read(at int64, n uint64) ([]byte, error) {
	m.phase.RLock()
	defer m.phase.RUnlock()
	if m.sorted == nil || m.b.numbers != nil || at < 0 || n > pieceBytes || uint64(at)+n > uint64(m.sorted.end.Load()) {
		return nil, errMessage
	}
	b := make([]byte, n)
	return b, m.sorted.read(b, at)
}

func (m *maker) takeColumn(shard, column int, b []byte) error {
	m.phase.RLock()
	defer m.phase.RUnlock()
	if m.columns == nil || m.b.numbers == nil || m.b.order != nil || shard < 0 || shard >= m.job.Shards || !m.own(shard) || column < 0 || column >= columnKinds {
		return errMessage
	}
	switch column {
	case labelColumn:
		if targets.Check(&m.job.Meta, b) != nil {
			return errMessage
		}
	case markColumn:
		for _, mark := range b {
			if mark > graph.Test {
				return errMessage
			}
		}
	}
	return m.columns.take(shard, column, b)
}
