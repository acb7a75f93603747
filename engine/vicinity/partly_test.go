package vicinity

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Where one node can't be reached, what others have answered is kept, and only the rest is
// asked for again.
func TestEdgesThatHaveComeAreKept(t *testing.T) {
	shards := shardsOf(kind{weighted: true}, 9, 4, 7, 5, 8, 6)
	net, all := sourcesOf(t, shards, 3, []int{0, 0, 1, 2, 1, 2})
	vertices, _ := rangeOf(shards, 2, 3, 4, 5)
	whole, err := all[0].Edges(t.Context(), vaultOf(t, true), vertices, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cut := errors.New("the cable is cut")
	// In small questions, so that node 2 has answered some when it is gone.
	for _, s := range all {
		s.most = most{40, 200, 200, 20}
	}
	asked := 0
	net.Trouble = func(_ context.Context, _, to int, _ peer.Query) error {
		if to == 2 {
			if asked++; asked > 2 {
				return cut
			}
		}
		return nil
	}
	near, _ := rangeOf(shards, 3, 5)
	partly, err := all[0].Edges(t.Context(), vaultOf(t, true), near, nil, nil)
	if n := partly.Len(); !errors.Is(err, cut) || n == 0 || n == len(near) {
		t.Fatalf("%v, with %d of %d rows", err, n, len(near))
	}
	net.Trouble = nil
	for _, s := range all {
		s.most = mostAtOnce
	}
	var tally peer.Tally
	rest, err := all[0].Edges(t.Context(), vaultOf(t, true), vertices, nil, &tally, partly)
	if err != nil {
		t.Fatal(err)
	}
	entries, missing := 0, 0
	for _, v := range vertices {
		if _, _, _, ok := partly.Row(v); !ok {
			sources, _, _, _ := whole.Row(v)
			missing, entries = missing+1, entries+len(sources)
		}
	}
	// All that was asked for is rows that were missing, beside what questions take.
	if got, rows := int(tally.Read().Bytes[peer.Shard]), RowBytes*missing+2*EntryBytes*entries; got < rows || got > rows+2*(peer.QueryFraming+peer.AnswerFraming+HeadBytes+100) {
		t.Errorf("%d bytes bring %d rows of %d entries", got, missing, entries)
	}
	for _, v := range vertices {
		a, w, n, _ := whole.Row(v)
		b, x, m, ok := rest.Row(v)
		if !ok || !slices.Equal(a, b) || !slices.Equal(w, x) || n != m {
			t.Errorf("vertex %d: %v, %v and %d, in place of %v, %v and %d", v, b, x, m, a, w, n)
		}
	}
}
