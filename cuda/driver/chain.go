//go:build cuda

package driver

/*
#include <cuda.h>
#include <stdint.h>

enum { hopmesh_most_parameters = 64 };

// hopmesh_node adds a kernel to a graph, behind another if there is one, or, with exec,
// sets what the node of it is launched with. What values hold is copied.
static CUresult hopmesh_node(CUgraph graph, CUgraphExec exec, CUgraphNode *node, const CUgraphNode *after, CUfunction f,
                             const unsigned int *shape, uint64_t *values, int n) {
    void *parameters[hopmesh_most_parameters];
    for (int i = 0; i < n; i++) parameters[i] = &values[i];
    CUDA_KERNEL_NODE_PARAMS p = {.func = f,
                                 .gridDimX = shape[0], .gridDimY = shape[1], .gridDimZ = shape[2],
                                 .blockDimX = shape[3], .blockDimY = shape[4], .blockDimZ = shape[5],
                                 .sharedMemBytes = shape[6], .kernelParams = parameters};
    if (exec != NULL) return cuGraphExecKernelNodeSetParams(exec, *node, &p);
    return cuGraphAddKernelNode(node, graph, after, after != NULL, &p);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// Link is a launch of a Chain. Its Shape has no Stream.
type Link struct {
	Kernel    *Kernel
	Shape     Shape
	Arguments []Argument
}

// Chain is a sequence of kernels that is submitted to the device at once. Each kernel
// runs after the one before. Their arguments may change between submissions, but not the
// kernels.
type Chain struct {
	graph  C.CUgraph // its nodes identify those of exec
	exec   C.CUgraphExec
	nodes  []C.CUgraphNode
	set    []setting // of the nodes, as set in exec
	values []uint64  // of their arguments
}

type setting struct {
	shape [7]C.uint
	first int // index of its first value
}

// NewChain makes a chain of launches.
func (t *Thread) NewChain(links []Link) (*Chain, error) {
	c := &Chain{nodes: make([]C.CUgraphNode, len(links))}
	if err := t.note(returned("cuGraphCreate", C.cuGraphCreate(&c.graph, 0))); err != nil {
		return nil, err
	}
	for i := range links {
		k := links[i].Kernel
		if len(k.sizes) > C.hopmesh_most_parameters {
			return nil, t.drop(c, fmt.Errorf("%w: kernel %s has %d parameters", ErrArgument, k.name, len(k.sizes)))
		}
		c.set = append(c.set, setting{links[i].shape(), len(c.values)})
		c.values = append(c.values, make([]uint64, len(k.sizes))...)
		if err := t.node(c, i, &links[i], "cuGraphAddKernelNode"); err != nil {
			return nil, t.drop(c, err)
		}
	}
	if err := t.note(returned("cuGraphInstantiate", C.cuGraphInstantiateWithFlags(&c.exec, c.graph, 0))); err != nil {
		return nil, t.drop(c, err)
	}
	return c, nil
}

// drop frees a chain that could not be made, and returns why.
func (t *Thread) drop(c *Chain, why error) error {
	_ = t.CloseChain(c) // fails only for the same reason as why
	return why
}

// SetLink sets the launch of link i, which must use the same kernel as before. Earlier
// submissions are not affected. It allocates nothing, and calls the driver only if
// something has changed.
func (t *Thread) SetLink(c *Chain, i int, l *Link) error {
	s := &c.set[i]
	if s.shape == l.shape() && holds(c.values[s.first:][:len(l.Kernel.sizes)], l.Arguments) {
		return nil
	}
	s.shape = l.shape()
	return t.node(c, i, l, "cuGraphExecKernelNodeSetParams")
}

func (t *Thread) node(c *Chain, i int, l *Link, call string) error {
	s, k := &c.set[i], l.Kernel
	values := c.values[s.first:][:len(k.sizes)]
	if err := k.take(values, l.Arguments); err != nil {
		return err
	}
	var after *C.CUgraphNode
	if i > 0 {
		after = &c.nodes[i-1]
	}
	var of *C.uint64_t
	if len(values) > 0 {
		of = (*C.uint64_t)(unsafe.Pointer(&values[0]))
	}
	code := C.hopmesh_node(c.graph, c.exec, &c.nodes[i], after, *(*C.CUfunction)(unsafe.Pointer(&k.f)), &s.shape[0], of, C.int(len(values)))
	if code != C.CUDA_SUCCESS {
		return fmt.Errorf("kernel %s: %w", k.name, t.note(returned(call, code)))
	}
	return nil
}

func (l *Link) shape() [7]C.uint {
	g, b := &l.Shape.Grid, &l.Shape.Block
	return [...]C.uint{C.uint(g[0]), C.uint(g[1]), C.uint(g[2]), C.uint(b[0]), C.uint(b[1]), C.uint(b[2]), C.uint(l.Shape.Shared)}
}

func holds(values []uint64, arguments []Argument) bool {
	return slices.EqualFunc(values, arguments, func(v uint64, a Argument) bool { return v == a.bits })
}

// LaunchChain submits the chain to s. It allocates nothing.
func (t *Thread) LaunchChain(c *Chain, s Stream) error {
	code := C.cuGraphLaunch(c.exec, *(*C.CUstream)(unsafe.Pointer(&s.s)))
	return t.note(returned("cuGraphLaunch", code))
}

// CloseChain frees the chain.
func (t *Thread) CloseChain(c *Chain) error {
	var err error
	if c.exec != nil {
		err = t.note(returned("cuGraphExecDestroy", C.cuGraphExecDestroy(c.exec)))
	}
	return errors.Join(err, t.note(returned("cuGraphDestroy", C.cuGraphDestroy(c.graph))))
}
