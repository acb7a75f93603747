package replica

import (
	"context"
	"errors"
	"testing"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/mapped/mappedtest"
)

// A file that can't be read ends the questions, and not the process.
func TestAskingReadsAFileThatIsCutShort(t *testing.T) {
	b := mappedtest.Cut(t, 1<<16, 0)
	all, sum := newAsking(t.Context()), 0
	all.Go(func(context.Context) error {
		for _, x := range b {
			sum += int(x)
		}
		return nil
	})
	if err := all.Wait(); !errors.Is(err, mapped.ErrUnreadable) {
		t.Errorf("%v, after a sum of %d", err, sum)
	}
}
