package build

import "unsafe"

// buckets holds streams of elements in one spool, in chunks of one size. One goroutine
// puts; once sealed, any goroutine may read.
type buckets[T fixed] struct {
	spool *spool
	chunk int   // elements
	open  []T   // the chunk being filled of each bucket
	fill  []int // elements in the open chunk
	full  [][]int64
}

func newBuckets[T fixed](s *spool, n, chunk int) *buckets[T] {
	return &buckets[T]{
		spool: s,
		chunk: chunk,
		open:  make([]T, n*chunk),
		fill:  make([]int, n),
		full:  make([][]int64, n),
	}
}

// put appends one element. Hot loops inline this.
func (b *buckets[T]) put(bucket int, v T) error {
	n := b.fill[bucket]
	b.open[bucket*b.chunk+n] = v
	b.fill[bucket] = n + 1
	if n+1 == b.chunk {
		return b.flush(bucket)
	}
	return nil
}

func (b *buckets[T]) flush(bucket int) error {
	n := b.fill[bucket]
	at, err := b.spool.append(raw(b.open[bucket*b.chunk : bucket*b.chunk+n]))
	if err != nil {
		return err
	}
	b.full[bucket] = append(b.full[bucket], at)
	if n == b.chunk {
		b.fill[bucket] = 0
	}
	return nil
}

// seal writes the open chunks and frees their memory. fill then holds the length of each
// bucket's last chunk, if it is not full.
func (b *buckets[T]) seal() error {
	for bucket, n := range b.fill {
		if n > 0 {
			if err := b.flush(bucket); err != nil {
				return err
			}
		}
	}
	b.open = nil
	return nil
}

// size returns the number of elements in a sealed bucket.
func (b *buckets[T]) size(bucket int) int {
	n := len(b.full[bucket]) * b.chunk
	if b.fill[bucket] > 0 {
		n += b.fill[bucket] - b.chunk
	}
	return n
}

// discard frees the disk space of a sealed bucket, which can't be read any more.
func (b *buckets[T]) discard(bucket int) {
	left := b.size(bucket)
	for _, at := range b.full[bucket] {
		n := min(b.chunk, left)
		_ = punch(b.spool.file, at, int64(n)*int64(unsafe.Sizeof(*new(T)))) // else it is freed with the file
		left -= n
	}
}

// A cursor reads a sealed bucket from its beginning.
type cursor[T fixed] struct {
	from   *buckets[T]
	bucket int
	at     int
}

// read fills to with the bucket's next elements and returns how many there were.
func (c *cursor[T]) read(to []T) (int, error) {
	n := min(len(to), c.from.size(c.bucket)-c.at)
	for done := 0; done < n; {
		chunk, within := c.at/c.from.chunk, c.at%c.from.chunk
		m := min(n-done, c.from.chunk-within)
		offset := c.from.full[c.bucket][chunk] + int64(within)*int64(unsafe.Sizeof(*new(T)))
		if err := c.from.spool.read(raw(to[done:done+m]), offset); err != nil {
			return done, err
		}
		done += m
		c.at += m
	}
	return n, nil
}
