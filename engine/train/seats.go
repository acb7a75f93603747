package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// What the service strategy.Checkpoint is asked, by Part.
const (
	askFile  uint32 = iota // for a piece of the checkpoint that this node goes on from
	askLeave               // nothing: the asker has all that it needs of this node
)

// mostPiece is how many bytes of a checkpoint are asked for at a time. Tests ask for less.
var mostPiece uint64 = 32 << 20

// leaveAfter is how long a node that is done waits for the others to have what they need
// of it. They have asked for it already: only what is lost on the way takes longer.
const leaveAfter = 10 * time.Second

// seats know who still needs this node.
type seats struct {
	mu   sync.Mutex
	left []bool
	done chan struct{} // closed when all have
}

func newSeats(nodes int) *seats {
	return &seats{left: make([]bool, nodes), done: make(chan struct{})}
}

// leave notes that a node needs nothing any more.
func (s *seats) leave(node int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[node] {
		return
	}
	s.left[node] = true
	left := 0
	for _, l := range s.left {
		if l {
			left++
		}
	}
	if left == len(s.left)-1 {
		close(s.done)
	}
}

// answer is the service's handler. The file that it serves stays as it is until all have
// what they lack of it: none is written before a step in which all take part.
func (s *seats) answer(dir string) strategy.Handler {
	return func(_ context.Context, from int, q strategy.Query, reply func(parts ...[]byte) error) error {
		switch q.Part {
		case askLeave:
			s.leave(from)
			return reply()
		case askFile:
			piece, err := readPiece(dir, q)
			if err != nil {
				return err
			}
			return reply(piece)
		}
		return fmt.Errorf("%w: a checkpoint's service knows no part %d", strategy.ErrRefused, q.Part)
	}
}

func readPiece(dir string, q strategy.Query) ([]byte, error) {
	if len(q.Body) != 16 || dir == "" {
		return nil, fmt.Errorf("%w: there is no such piece of a checkpoint", strategy.ErrRefused)
	}
	at, n := binary.LittleEndian.Uint64(q.Body), binary.LittleEndian.Uint64(q.Body[8:])
	if n == 0 || n > mostPiece || at > 1<<62 {
		return nil, fmt.Errorf("%w: %d bytes of a checkpoint from %d on", strategy.ErrRefused, n, at)
	}
	file, err := os.Open(filepath.Join(dir, CheckpointFile))
	if err != nil {
		return nil, errors.Join(strategy.ErrRefused, err)
	}
	piece := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(file, int64(at), int64(n)), piece); err != nil {
		return nil, errors.Join(strategy.ErrRefused, fmt.Errorf("read %d bytes of the checkpoint from %d on: %w", n, at, err), file.Close())
	}
	return piece, file.Close()
}

// leave tells all others that this node has what it needs of them, and waits until
// they have what they need of it. It is a courtesy: whoever does not answer has failed
// or is gone, and what this node has made is whole.
func (t *trainer) leave(ctx context.Context) {
	s := t.shared
	ctx, cancel := context.WithTimeout(ctx, leaveAfter)
	defer cancel()
	var asking sync.WaitGroup
	for node := range s.work.Nodes {
		if node == s.work.Self {
			continue
		}
		asking.Go(func() {
			q := strategy.Query{Service: strategy.Checkpoint, Kind: strategy.Control, Part: askLeave}
			if _, err := s.peers.Ask(ctx, node, q, nil); err != nil {
				t.log.Debug("a node was not told that this one is done", "node", s.name(node), "err", err)
			}
		})
	}
	select {
	case <-s.seats.done:
	case <-ctx.Done():
	}
	asking.Wait()
}
