package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

const modelOwner = "0badcafe"

// keptModel is a checkpoint of several pieces.
func keptModel(t *testing.T, path string, seed byte) []byte {
	t.Helper()
	b := make([]byte, 2*pieceBytes+int(seed))
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return b
}

// from answers as serveModel does.
func from(path string) func(request, []byte) ([]byte, error) {
	return func(q request, _ []byte) ([]byte, error) {
		head, piece, err := pieceOf(path, q)
		return append(head, piece...), err
	}
}

func TestModelIsTakenPieceByPiece(t *testing.T) {
	there, here := filepath.Join(t.TempDir(), "there"), filepath.Join(t.TempDir(), "here")
	want := keptModel(t, there, 1)
	if err := take(modelOwner, here, from(there)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(here); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if _, _, err := pieceOf(there, request{modelOwner, 0, uint64(len(want)) + 1}); !errors.Is(err, mesh.ErrProtocol) {
		t.Errorf("beyond the end: %v", err)
	}
	if err := take(modelOwner, here, from(here+"-not")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A job that goes on writes other checkpoints in the place of the one that is taken.
func TestModelThatChangesIsTakenAnew(t *testing.T) {
	there, here := filepath.Join(t.TempDir(), "there"), filepath.Join(t.TempDir(), "here")
	keptModel(t, there, 1)
	asked, changes := 0, 3
	var want []byte
	serve := func(q request, buf []byte) ([]byte, error) {
		if asked++; q.offset > 0 && changes > 0 {
			changes--
			want = keptModel(t, there, byte(10+changes))
			then := time.Unix(int64(1e6*asked), 0) // however coarse the disk's clock is
			if err := os.Chtimes(there, then, then); err != nil {
				t.Fatal(err)
			}
		}
		return from(there)(q, buf)
	}
	if err := take(modelOwner, here, serve); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(here); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
	changes = 1000
	if err := take(modelOwner, here, serve); mesh.RefusalOf(err) != reasonChanged || changes != 1000-attempts {
		t.Errorf("got %v after %d changes", err, 1000-changes)
	}
}

func TestModelFromAHostileNode(t *testing.T) {
	here := filepath.Join(t.TempDir(), "here")
	answer := func(mark, size uint64, n int) []byte {
		b := binary.LittleEndian.AppendUint64(nil, mark)
		return append(binary.LittleEndian.AppendUint64(b, size), make([]byte, n)...)
	}
	for name, says := range map[string]func(q request) []byte{
		"nothing":              func(request) []byte { return nil },
		"a head alone":         func(request) []byte { return answer(1, 0, 0) },
		"less than it must":    func(request) []byte { return answer(1, 10, 9) },
		"more than it must":    func(request) []byte { return answer(1, 10, 11) },
		"a model without end":  func(request) []byte { return answer(1, maxModel+1, pieceBytes) },
		"a size that changes":  func(q request) []byte { return answer(1, 10*pieceBytes-q.offset, pieceBytes) },
		"a mark that changes":  func(q request) []byte { return answer(1+q.offset, 10*pieceBytes, pieceBytes) },
		"an end in the middle": func(q request) []byte { return answer(1, 2*pieceBytes, pieceBytes-min(1, int(q.offset))) },
	} {
		t.Run(name, func(t *testing.T) {
			err := take(modelOwner, here, func(q request, _ []byte) ([]byte, error) {
				if q.offset > 4*pieceBytes {
					t.Fatal("goes on and on")
				}
				return says(q), nil
			})
			if !errors.Is(err, mesh.ErrProtocol) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestModelThatFindsNoRoom(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there")
	keptModel(t, there, 1)
	for _, here := range []string{"/dev/full", filepath.Join(t.TempDir(), "no", "folder")} {
		if err := take(modelOwner, here, from(there)); !errors.Is(err, errKeeping) {
			t.Errorf("into %s: %v", here, err)
		}
	}
}

func FuzzModelRequest(f *testing.F) {
	path := filepath.Join(f.TempDir(), "model")
	if err := os.WriteFile(path, make([]byte, 1000), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Add(request{modelOwner, 0, 0}.bytes())
	f.Add(request{modelOwner, 7, 990}.bytes())
	f.Add(bytes.Repeat([]byte{0xff}, requestBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < requestBytes {
			return
		}
		in := [requestBytes]byte(b)
		q := parseRequest(&in)
		if !bytes.Equal(q.bytes(), in[:]) {
			t.Fatalf("%x was read as %+v", in, q)
		}
		head, piece, err := pieceOf(path, q)
		if err == nil && (len(head) != headBytes || uint64(len(piece)) != 1000-q.offset) {
			t.Fatalf("%+v got %d bytes", q, len(piece))
		}
	})
}
