//go:build cuda

package driver

// #include <cuda.h>
import "C"

import (
	"errors"
	"unsafe"
)

// A Graph is work of a stream that was recorded once, to be given to the device
// as a whole.
type Graph struct{ exec C.CUgraphExec }

// Capture records what f gives to s, and to streams that come after events of it,
// instead of doing it. f must not wait for the device.
func (t *Thread) Capture(s Stream, f func() error) (*Graph, error) {
	stream := *(*C.CUstream)(unsafe.Pointer(&s.s))
	if err := t.note(returned("cuStreamBeginCapture", C.cuStreamBeginCapture(stream, C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))); err != nil {
		return nil, err
	}
	wrong := f()
	var graph C.CUgraph
	err := t.note(returned("cuStreamEndCapture", C.cuStreamEndCapture(stream, &graph)))
	if graph != nil {
		// What is instantiated keeps nothing of it.
		defer C.cuGraphDestroy(graph)
	}
	if wrong != nil || err != nil {
		return nil, errors.Join(wrong, err)
	}
	g := &Graph{}
	if err := t.note(returned("cuGraphInstantiate", C.cuGraphInstantiateWithFlags(&g.exec, graph, 0))); err != nil {
		return nil, err
	}
	return g, nil
}

// LaunchGraph gives what was recorded to s. It allocates nothing.
func (t *Thread) LaunchGraph(g *Graph, s Stream) error {
	return t.note(returned("cuGraphLaunch", C.cuGraphLaunch(g.exec, *(*C.CUstream)(unsafe.Pointer(&s.s)))))
}

// CloseGraph gives the graph back.
func (t *Thread) CloseGraph(g *Graph) error {
	return t.note(returned("cuGraphExecDestroy", C.cuGraphExecDestroy(g.exec)))
}
