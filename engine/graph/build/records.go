package build

import "context"

// records holds edges on disk in buckets: a key for each, and a weight for those that
// have one. Several goroutines may each put into their own part. Weighted edges need a
// defined order, so they use a single part.
type records struct {
	parts []part
}

type part struct {
	keys    *buckets[uint64]
	weights *buckets[float32] // nil without weights
}

func newRecords(s *spool, parts, n, chunk int, weighted bool) *records {
	r := &records{}
	for range parts {
		p := part{keys: newBuckets[uint64](s, n, chunk)}
		if weighted {
			p.weights = newBuckets[float32](s, n, chunk)
		}
		r.parts = append(r.parts, p)
	}
	return r
}

func (r *records) seal() error {
	for _, p := range r.parts {
		if err := p.keys.seal(); err != nil {
			return err
		}
		if p.weights == nil {
			continue
		}
		if err := p.weights.seal(); err != nil {
			return err
		}
	}
	return nil
}

func (r *records) size(bucket int) int {
	n := 0
	for _, p := range r.parts {
		n += p.keys.size(bucket)
	}
	return n
}

// largest returns the size of the largest bucket.
func (r *records) largest() int {
	most := 0
	for bucket := range r.parts[0].keys.full {
		most = max(most, r.size(bucket))
	}
	return most
}

// scan yields a bucket's records, each part's in the order they were put. It reads keys
// into chunk and, if light is not nil, weights into light; then every key must have a
// weight.
func (r *records) scan(ctx context.Context, bucket int, chunk []uint64, light []float32, yield func([]uint64, []float32) error) error {
	for _, p := range r.parts {
		if err := p.scan(ctx, bucket, chunk, light, yield); err != nil {
			return err
		}
	}
	return nil
}

func (p part) scan(ctx context.Context, bucket int, chunk []uint64, light []float32, yield func([]uint64, []float32) error) error {
	keys := cursor[uint64]{from: p.keys, bucket: bucket}
	weights := cursor[float32]{from: p.weights, bucket: bucket}
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := keys.read(chunk)
		if err != nil || n == 0 {
			return err
		}
		var w []float32
		if light != nil {
			w = light[:n]
			if _, err := weights.read(w); err != nil {
				return err
			}
		}
		if err := yield(chunk[:n], w); err != nil {
			return err
		}
	}
}
