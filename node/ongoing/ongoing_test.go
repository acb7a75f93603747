package ongoing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestRequestsEndWithTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		ctx, stop := context.WithCancel(t.Context())
		during, done, err := g.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, over, err := g.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		over()
		ended := make(chan error, 1)
		go func() { ended <- g.EndWith(ctx) }()
		synctest.Wait()
		if during.Err() != nil {
			t.Fatalf("a request ended early: %v", context.Cause(during))
		}
		stop()
		<-during.Done()
		if cause := context.Cause(during); !errors.Is(cause, ErrStopping) {
			t.Errorf("it ended by %v", cause)
		}
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("the group did not wait for a request: %v", err)
		default:
		}
		done()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, _, err := g.Begin(t.Context()); !errors.Is(err, ErrStopping) {
			t.Errorf("a request began afterwards: %v", err)
		}
	})
}
