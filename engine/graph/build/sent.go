package build

import (
	"fmt"
	"sync"

	"github.com/hopmesh/hopmesh/engine/graph/targets"
)

// sentColumns are the columns of this node's shards as they were sent.
type sentColumns struct {
	job   *job
	spool *spool

	mu    sync.Mutex
	parts map[[2]int][]span // by shard and column
}

type span struct{ at, length int64 }

func (c *sentColumns) close() {
	if c != nil {
		c.spool.close()
	}
}

func (c *sentColumns) take(shard, column int, b []byte) error {
	if uint64(c.spool.end.Load())+uint64(len(b)) > c.job.Output {
		return errMessage // more than all shards take
	}
	at, err := c.spool.append(b)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.parts = map[[2]int][]span{}
	}
	key := [2]int{shard, column}
	c.parts[key] = append(c.parts[key], span{at, int64(len(b))})
	return nil
}

func (c *sentColumns) about() columnsAbout {
	return columnsAbout{c.job.Labels, c.job.Splits, c.job.Names}
}

func (c *sentColumns) length(shard, column int) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.parts[[2]int{shard, column}] {
		n += s.length
	}
	return n
}

func (c *sentColumns) nameBytes(shard int, _ []uint32) int64 { return c.length(shard, nameColumn) }

func (c *sentColumns) write(column, shard int, rows []uint32, buf []byte, out func([]byte) error) error {
	n := int64(len(rows))
	want := map[int]int64{idColumn: 8 * n, labelColumn: int64(targets.RowBytes(&c.job.Meta)) * n, markColumn: int64(c.job.Splits) * n}
	if c.job.Names {
		want[idColumn] += 8
		want[nameColumn] = c.length(shard, nameColumn)
	}
	if c.length(shard, column) != want[column] {
		return fmt.Errorf("a column of shard %d was sent with %d bytes, and should have %d", shard, c.length(shard, column), want[column])
	}
	c.mu.Lock()
	spans := c.parts[[2]int{shard, column}]
	c.mu.Unlock()
	for _, s := range spans {
		for done := int64(0); done < s.length; {
			b := buf[:min(int64(len(buf)), s.length-done)]
			if err := c.spool.read(b, s.at+done); err != nil {
				return err
			}
			if err := out(b); err != nil {
				return err
			}
			done += int64(len(b))
		}
	}
	return nil
}
