package trained

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/embedding"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A part is a checkpoint that has the learnt rows of some vertices.
type part struct {
	*Snapshot
	best   int // its best epoch; 0: none
	digest [sha256.Size]byte
	rows   []float32 // its best weights
}

// Assemble writes a checkpoint that has the weights and all learnt rows of the best epoch which several of one
// run, that has ended before it was done, have together. Those that can't be read are left out. The error is
// ErrInParts if no epoch's rows are all there.
func Assemble(to string, paths []string) (err error) {
	var all []part
	defer func() {
		for i := range all {
			err = errors.Join(err, all[i].Close())
		}
	}()
	var model *nn.Model
	columns := 0
	for _, path := range paths {
		c, opened := OpenCheckpoint(path)
		if opened != nil {
			continue
		}
		all = append(all, part{Snapshot: c})
		of := &all[len(all)-1]
		r := c.Recipe.Models()[0]
		if len(c.Models) > 1 || c.Models[0].State.Best == nil || r.Embeddings < 1 {
			continue
		}
		if model == nil {
			decoder, relations := "", 0
			if k := task.Named(r.Task); k != nil && k.Pairs && r.Links != nil {
				decoder, relations = r.Links.Decoder, r.Links.Relations
			}
			if model, err = modelOf(r.Model, c.About, decoder, relations); err != nil {
				return err
			}
			columns = r.Embeddings
		}
		if of.rows, err = c.File.Row(BestPrefix, model.Params(), model.Size()); err != nil {
			return err
		}
		of.best, of.digest = c.Models[0].State.Best.Epoch, sha256.Sum256(plain.Bytes(of.rows))
	}
	var of *part
	var rows [][]float32
	for i := range all {
		p := &all[i]
		if p.best == 0 || of != nil && p.best <= of.best {
			continue
		}
		some, err := p.joined(all, columns)
		if err != nil {
			return err
		}
		if some != nil {
			of, rows = p, some
		}
	}
	if of == nil {
		return ErrInParts
	}
	return checkpoint.WriteFile(to, []checkpoint.Section{
		{Prefix: BestPrefix, Read: func([]float32) []float32 { return of.rows }, Params: model.Params(), Here: true},
		embedding.Joined(int(of.About.Vertices), columns, rows),
	}, of.File.Metadata(), func() error { return nil })
}

// joined returns the rows of all shards, as files of the same best weights have them; nil: some are in none.
func (p *part) joined(all []part, columns int) (shards [][]float32, err error) {
	var by struct{ Owners []int }
	if err := p.File.JSON(embedding.KeepersField, &by); err != nil {
		return nil, err
	}
	vertices := 0
	for shard := range by.Owners {
		for i := range all {
			o := &all[i]
			if o.best != p.best || o.digest != p.digest || o.Dataset != p.Dataset {
				continue
			}
			rows, err := embedding.BestOf(o.File, shard, columns)
			if err != nil {
				return nil, fmt.Errorf("read the learnt rows of shard %d: %w", shard, err)
			}
			if rows != nil {
				shards, vertices = append(shards, rows), vertices+len(rows)/columns
				break
			}
		}
	}
	if vertices != int(p.About.Vertices) {
		return nil, nil
	}
	return shards, nil
}
