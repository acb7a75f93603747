//go:build cuda

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/cuda/kernels"
	"github.com/hopmesh/hopmesh/cuda/ptx"
	"github.com/hopmesh/hopmesh/engine/stats"
)

// timeCopies times the driver's own copy within the GPU, which is the reference for
// throughput, and the kernel that gathers rows by ids on the GPU.
func timeCopies(m measure) error {
	d, err := driver.Open(0)
	if err != nil {
		return err
	}
	err = d.Do(func(on *driver.Thread) error {
		s, err := on.NewStream()
		if err != nil {
			return err
		}
		c := &copies{on: on, stream: s, m: m}
		return errors.Join(c.within(), c.gather(), on.CloseStream(s))
	})
	return errors.Join(err, d.Close())
}

type copies struct {
	on     *driver.Thread
	stream driver.Stream
	m      measure
}

// noise returns memory filled with random numbers, which repeat.
func (c *copies) noise(bytes int) (driver.Memory, error) {
	to, err := c.on.Alloc(bytes)
	p, err2 := c.on.AllocPinned(min(bytes, 1<<22))
	if err := errors.Join(err, err2); err != nil {
		return to, err
	}
	draws := rand.New(rand.NewPCG(2, 2))
	numbers := driver.Numbers[float32](p)
	for i := range numbers {
		numbers[i] = draws.Float32() - 0.5
	}
	for at := 0; at < bytes && err == nil; at += p.Len() {
		n := min(p.Len(), bytes-at)
		err = c.on.SendNow(to.Slice(at, at+n), p.Slice(0, n))
	}
	return to, errors.Join(err, c.on.FreePinned(p))
}

// median returns the median milliseconds of one operation that do enqueues on the stream,
// after a warm-up.
func (c *copies) median(do func() error) (float64, error) {
	from, err := c.on.NewEvent(true)
	to, err2 := c.on.NewEvent(true)
	err = errors.Join(err, err2, do())
	var all []float64
	for range c.m.rounds {
		err = errors.Join(err, c.on.Record(from, c.stream))
		for range c.m.each {
			err = errors.Join(err, do())
		}
		if err := errors.Join(err, c.on.Record(to, c.stream), c.on.Await(to)); err != nil {
			return 0, err
		}
		took, err := c.on.Between(from, to)
		if err != nil {
			return 0, err
		}
		all = append(all, took.Seconds()*1e3/float64(c.m.each))
	}
	return stats.Median(all), errors.Join(c.on.CloseEvent(from), c.on.CloseEvent(to))
}

func (c *copies) within() error {
	from, err := c.noise(c.m.copied)
	to, err2 := c.on.Alloc(c.m.copied)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	ms, err := c.median(func() error { return c.on.Copy(to, from, c.stream) })
	if err != nil {
		return err
	}
	figure("copy", 2*float64(c.m.copied)/ms/1e6, "GB/s")
	return errors.Join(c.on.Free(from), c.on.Free(to))
}

// gathering is the kernel for rows of float32 (gather.cu).
const gathering = "gather_f32_f32"

func (c *copies) gather() error {
	k, err := c.kernel("gather", gathering)
	if err != nil {
		return err
	}
	m, cols := c.m, c.m.columns
	x, err := c.noise(4 * m.vertices * cols)
	y, err1 := c.on.Alloc(4 * m.inputs * cols)
	// The kernel's arguments: address, stride and first vertex of the only part, followed
	// by the ids.
	const ids = 24
	table, err2 := c.on.Alloc(ids + 4*m.inputs)
	p, err3 := c.on.AllocPinned(ids + 4*m.inputs)
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return err
	}
	draws := rand.New(rand.NewPCG(3, 3))
	driver.Numbers[uint64](p)[0], driver.Numbers[int64](p)[1], driver.Numbers[uint32](p)[4] = x.Address(), int64(cols), 0
	for i := range m.inputs {
		driver.Numbers[uint32](p)[ids/4+i] = draws.Uint32N(uint32(m.vertices))
	}
	if err := c.on.SendNow(table, p); err != nil {
		return err
	}
	shape := driver.Shape{Grid: [3]int{(m.inputs + 31) / 32, (cols + 127) / 128, 1}, Block: [3]int{256, 1, 1}, Stream: c.stream}
	ms, err := c.median(func() error {
		return c.on.Launch(k, shape, y.Argument(), driver.Int64(int64(cols)), driver.Int32(int32(m.inputs)), driver.Int32(int32(cols)),
			table.Slice(16, 20).Argument(), table.Slice(0, 8).Argument(), table.Slice(8, 16).Argument(), driver.Int32(1), table.Slice(ids, table.Len()).Argument())
	})
	if err != nil {
		return err
	}
	figure("gathered rows, ours", float64(m.inputs*(8*cols+4))/ms/1e6, "GB/s")
	return errors.Join(c.on.Free(x), c.on.Free(y), c.on.Free(table), c.on.FreePinned(p))
}

func (c *copies) kernel(module, name string) (*driver.Kernel, error) {
	for _, m := range kernels.Modules() {
		if m.Name != module {
			continue
		}
		sizes, err := ptx.Kernels(m.PTX)
		if err != nil {
			return nil, err
		}
		loaded, err := c.on.Load(m.PTX)
		if err != nil {
			return nil, err
		}
		return c.on.Kernel(loaded, name, sizes[name]...)
	}
	return nil, fmt.Errorf("there are no kernels of %s", module)
}
