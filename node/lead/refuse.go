package lead

import (
	"errors"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

// Reasons of refusals that callers tell apart.
const (
	NotLeader = "not-leader"
	NotFound  = "not-found"
	Conflict  = "conflict"
	Invalid   = "invalid"
)

// ErrNotFromLeader refuses what only the leader may ask of a node.
var ErrNotFromLeader = errors.New("only the leader may say this")

// APIError gives the refusal of an order the status that HTTP has for its reason. What is
// no refusal may succeed later, so it is Unavailable.
func APIError(err error) error {
	if err == nil {
		return nil
	}
	r, is := errors.AsType[*mesh.Refusal](err)
	if !is {
		return api.Unavailable("%v", err)
	}
	switch r.Reason {
	case NotFound:
		return api.NotFound("%s", r.Message)
	case Conflict:
		return api.Conflict("%s", r.Message)
	case Invalid:
		return api.Invalid("%s", r.Message)
	}
	return api.Unavailable("%v", err)
}
