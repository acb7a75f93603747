package traffic

import (
	"crypto/sha256"
	"encoding"
	"fmt"
	"hash"

	"github.com/hopmesh/hopmesh/engine/exchange"
)

// A Digest is the hash of all weights, of which each stage has a part. Each stage continues
// where the one before has stopped, way by way, so nodes of a stage that differ come to
// different digests.
type Digest struct {
	sum      hash.Hash
	state    []byte // as it is sent
	from     *Fetch // nil: this is the first stage
	previous []byte
}

// NewDigest returns one that continues what a fetch takes; nil: it begins here.
func NewDigest(from *Fetch) *Digest {
	d := &Digest{sum: sha256.New(), from: from}
	if from != nil {
		d.state = d.append(nil)
		d.previous = make([]byte, len(d.state))
	}
	return d
}

func (d *Digest) append(to []byte) []byte {
	to, err := d.sum.(encoding.BinaryAppender).AppendBinary(to)
	if err != nil {
		panic(fmt.Sprintf("pipe: the state of a digest: %v", err)) // it never fails
	}
	return to
}

// Begin continues where the stage before has stopped, which has offered that under a tag.
func (d *Digest) Begin(t exchange.Tag) error {
	d.sum.Reset()
	if d.from == nil {
		return nil
	}
	d.from.Start(t, d.previous)
	if err := d.from.Wait(); err != nil {
		return fmt.Errorf("fetch the digest of the weights of earlier stages: %w", err)
	}
	if err := d.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(d.previous); err != nil {
		return fmt.Errorf("node %s sent a malformed digest of its weights: %w", d.from.w.Work.Nodes[d.from.node], err)
	}
	return nil
}

// Pause adds a stage's weights and returns what the next one continues, until the next Pause.
func (d *Digest) Pause(own []byte) []byte {
	d.sum.Write(own)
	d.state = d.append(d.state[:0])
	return d.state
}

// End adds the last stage's weights and returns the digest.
func (d *Digest) End(own []byte) []byte {
	d.sum.Write(own)
	return d.sum.Sum(nil)
}
