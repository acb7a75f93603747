package cli

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
)

// cut is a daemon whose first stream of events is cut off. It ends with the second one.
type cut struct {
	*clitest.Backend
	fails          error // what it answers when it is asked for its status
	streams, asked atomic.Int32
}

func (c *cut) Events(ctx context.Context) <-chan api.Event {
	if c.streams.Add(1) == 1 {
		return clitest.Play[api.Event](ctx, nil, false)
	}
	return c.Backend.Events(ctx)
}

func (c *cut) Status(ctx context.Context) (api.Status, error) {
	c.asked.Add(1)
	if c.fails != nil {
		return api.Status{}, c.fails
	}
	return c.Backend.Status(ctx)
}

// A daemon that answers has not ended, whatever became of its stream.
func TestLeaveWaitsUntilTheDaemonIsGone(t *testing.T) {
	for name, fails := range map[string]error{"it answers": nil, "it is in no mesh": api.Unavailable("this node is in no mesh")} {
		c := &cut{Backend: clitest.Healthy(), fails: fails}
		out, stderr, code := hopmesh(t.Context(), echo(), "leave", "--addr", clitest.Serve(t, c))
		if code != 0 || out != "The node has left its mesh, and its agent has ended.\n" {
			t.Errorf("%s: %d %s%s", name, code, out, stderr)
		}
		if c.streams.Load() != 2 || c.asked.Load() == 0 {
			t.Errorf("%s: it was heard %d times and asked %d times", name, c.streams.Load(), c.asked.Load())
		}
	}
}

// Whoever is refused can't know whether the node has left, and does not say so.
func TestLeaveThatIsCutOff(t *testing.T) {
	c := &cut{Backend: clitest.Healthy(), fails: api.NewError(http.StatusUnauthorized, "the token has ended")}
	out, stderr, code := hopmesh(t.Context(), echo(), "leave", "--addr", clitest.Serve(t, c))
	const says = "hopmesh: the connection was lost while the node was leaving (the token has ended): `hopmesh members` on another node shows whether it has left\n"
	if code != 1 || out != "" || !strings.HasSuffix(stderr, says) {
		t.Errorf("%d %s%s", code, out, stderr)
	}
}
