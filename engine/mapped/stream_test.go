package mapped

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{1, 4096, pieceSize, pieceSize + 1, 2*pieceSize + 5000} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i>>8 ^ i)
		}
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		got, pieces, err := stream(t.Context(), t, path, int64(size), func(int) {})
		if err != nil || !bytes.Equal(got, want) || pieces != (size+pieceSize-1)/pieceSize {
			t.Errorf("%d bytes: got %d in %d pieces, %v", size, len(got), pieces, err)
		}
	}
	cut := func(piece int) {
		if piece == 1 {
			if err := os.Truncate(path, pieceSize); err != nil {
				t.Error(err)
			}
		}
	}
	if got, _, err := stream(t.Context(), t, path, 2*pieceSize, cut); !errors.Is(err, ErrUnreadable) || len(got) != pieceSize {
		t.Errorf("a file that is cut short: %d bytes, %v", len(got), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	if err := os.Truncate(path, 3*pieceSize); err != nil {
		t.Fatal(err)
	}
	if _, pieces, err := stream(ctx, t, path, 3*pieceSize, func(int) { cancel(enough) }); !errors.Is(err, enough) || pieces != 1 {
		t.Errorf("a stream that is cancelled: %d pieces, %v", pieces, err)
	}
	if err := Stream(t.Context(), nil, func([]byte) { t.Error("nothing has a piece") }); err != nil {
		t.Error(err)
	}
}

// stream returns what Stream passes, and in how many pieces; after is called with the number of each.
func stream(ctx context.Context, t *testing.T, path string, size int64, after func(piece int)) (got []byte, pieces int, err error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	m := Add(path, memory)
	defer func() {
		m.Remove()
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	}()
	err = Stream(ctx, memory, func(b []byte) {
		got = append(got, b...)
		pieces++
		after(pieces)
	})
	return got, pieces, err
}
