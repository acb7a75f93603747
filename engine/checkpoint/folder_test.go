package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// folder is one of a run whose epochs have 5 steps.
func folder(dir string) *Folder {
	return NewFolder(Options{Dir: dir, Steps: 5, Log: slog.New(slog.DiscardHandler)})
}

func save(t *testing.T, f *Folder, at Place) {
	t.Helper()
	if err := f.Save(at, []Section{numbers("", first, params...)}, map[string]string{"step": string(rune('0' + at.Step))}, noFault); err != nil {
		t.Fatal(err)
	}
}

// steps are those of the files that lie in a folder, by the last one's name and the other's.
func steps(t *testing.T, dir string) (last, before string) {
	t.Helper()
	for name, to := range map[string]*string{LastFile: &last, beforeFile: &before} {
		f, err := Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		*to = f.Text("step")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return last, before
}

func TestWhenACheckpointIsDue(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := folder(dir)
		f.Begin(0)
		if f.Due() || !f.Missing() || f.Exists() {
			t.Error("it is due as soon as the run begins")
		}
		time.Sleep(leastInterval)
		if !f.Due() {
			t.Error("it is not due after the interval")
		}
		save(t, f, Place{1, 3, 1})
		if at, good := f.Last(); f.Due() || f.Missing() || !f.Exists() || !good || at != (Place{1, 3, 1}) {
			t.Errorf("it is due when one was written: %+v", f)
		}
		time.Sleep(leastInterval)
		f.Fail()
		if f.Due() || f.Missing() || !f.Failed() {
			t.Error("one that could not be written is tried again at once")
		}
		f.Begin(time.Second)
		time.Sleep(time.Second)
		if !f.Due() {
			t.Error("the first is not due as early as was said")
		}
		save(t, f, Place{1, 4, 1})
		if f.Failed() {
			t.Error("one that was written has failed")
		}
		for took, want := range map[time.Duration]time.Duration{time.Millisecond: leastInterval, 30 * time.Millisecond: 3 * time.Second, time.Second: mostInterval} {
			f.Begin(0)
			f.took = took
			time.Sleep(want - 1)
			early := f.Due()
			time.Sleep(time.Nanosecond)
			if early || !f.Due() {
				t.Errorf("one that takes %v is not due after %v", took, want)
			}
		}
		none := folder("")
		if none.Keeps() || none.Due() || none.Missing() || none.Exists() {
			t.Error("a run without a folder keeps checkpoints")
		}
	})
}

// The one before the last stays until a step was made from the last, and is gone when the
// run has ended.
func TestTheCheckpointBeforeTheLast(t *testing.T) {
	for name, c := range map[string]struct {
		saved        []Place
		failed       Place
		good         bool
		last, before string
		at           Place
	}{
		"a step was made from the last": {[]Place{{1, 1, 1}, {1, 3, 1}}, Place{1, 4, 1}, true, "3", "1", Place{1, 3, 1}},
		"the last has failed":           {[]Place{{1, 1, 1}, {1, 3, 1}}, Place{1, 3, 1}, true, "1", "", Place{1, 1, 1}},
		"both begin alike":              {[]Place{{1, 1, 1}, {1, 5, 1}, {2, 0, 1}}, Place{2, 0, 1}, true, "1", "", Place{1, 1, 1}},
		"there was one":                 {[]Place{{1, 1, 1}}, Place{1, 1, 1}, false, "1", "", Place{1, 1, 1}},
		"there was none":                {nil, Place{1, 1, 1}, false, "", "", Place{}},
		"both have failed":              {[]Place{{1, 1, 1}, {1, 3, 1}}, Place{1, 1, 1}, false, "3", "1", Place{1, 3, 1}},
	} {
		dir := t.TempDir()
		f := folder(dir)
		for _, at := range c.saved {
			save(t, f, at)
		}
		good := f.GoBack(c.failed)
		at, _ := f.Last()
		if last, before := steps(t, dir); good != c.good || last != c.last || before != c.before || at != c.at {
			t.Errorf("%s: %v, at %+v, with %q and %q", name, good, at, last, before)
		}
		f.Close()
		if last, before := steps(t, dir); last != c.last || before != "" {
			t.Errorf("%s: left are %q and %q", name, last, before)
		}
	}
	dir := t.TempDir()
	single := NewFolder(Options{Dir: dir, Steps: 5, Single: true})
	save(t, single, Place{1, 1, 1})
	save(t, single, Place{1, 3, 1})
	if last, before := steps(t, dir); last != "3" || before != "" {
		t.Errorf("a single one has %q and %q", last, before)
	}
}

func TestAFolderThatTakesNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	f := folder(filepath.Join(dir, "run"))
	save(t, f, Place{1, 1, 1})
	if err := os.MkdirAll(f.Path()+".tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	err := f.Save(Place{2, 3, 1}, nil, map[string]string{}, noFault)
	if u, ok := errors.AsType[*Unsaved](err); !ok || u.Err == nil || !strings.HasPrefix(err.Error(), "write the checkpoint of epoch 2, step 3: open ") || !strings.HasSuffix(err.Error(), ": free some space in the data directory") {
		t.Error(err)
	}
	if at, good := f.Last(); !good || at != (Place{1, 1, 1}) {
		t.Errorf("the last is %+v", at)
	}
	broken := errors.New("the device is broken")
	if err := folder(filepath.Join(dir, "other")).Save(Place{1, 1, 1}, nil, map[string]string{}, func() error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	} else if u, ok := errors.AsType[*Unsaved](err); ok {
		t.Error(u)
	}
	f.Forget()
	if !f.Missing() {
		t.Error("it is not forgotten")
	}
	f.Adopt(Place{4, 0, 1})
	if at, good := f.Last(); !good || at.Epoch != 4 {
		t.Errorf("adopted is %+v", at)
	}
}

// askOf asks for pieces of the checkpoint in a folder.
func askOf(dir string) Ask {
	return func(question []byte, limit int, _ []byte) ([]byte, error) {
		b, err := ReadPiece(dir, question, limit)
		if len(b) > limit {
			return nil, errors.New("a piece is too long")
		}
		return b, err
	}
}

func TestACheckpointIsReceivedInPieces(t *testing.T) {
	defer func(n uint64) { mostPiece = n }(mostPiece)
	mostPiece = 100
	from, to := t.TempDir(), t.TempDir()
	save(t, folder(from), Place{1, 3, 1})
	want, err := os.ReadFile(filepath.Join(from, LastFile))
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(len(want))
	var there bytes.Buffer
	if err := Fetch(&there, size, askOf(from)); err != nil || !bytes.Equal(there.Bytes(), want) {
		t.Errorf("%v, %d bytes of %d", err, there.Len(), size)
	}
	f := folder(to)
	save(t, f, Place{1, 1, 1})
	refused := errors.New("it is of another job")
	short := func(question []byte, limit int, buffer []byte) ([]byte, error) {
		b, err := askOf(from)(question, limit, buffer)
		return b[:len(b)/2], err
	}
	for _, c := range []struct {
		size   uint64
		ask    Ask
		accept error
		want   string
	}{
		{size, askOf(from), refused, "it is of another job"},
		{size + 1, askOf(from), nil, "from"},
		{size, short, nil, "50 bytes came of the 100 that were asked for"},
		{size, askOf(t.TempDir()), nil, "no such file"},
	} {
		if err := f.Receive(c.size, c.ask, func(string) error { return c.accept }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
		if last, _ := steps(t, to); last != "1" {
			t.Errorf("%s: the last is of step %s", c.want, last)
		}
		if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
			t.Errorf("%s: left are %v, %v", c.want, left, err)
		}
	}
	err = f.Receive(size, askOf(from), func(path string) error {
		got, err := os.ReadFile(path)
		if !bytes.Equal(got, want) {
			t.Error("another file came")
		}
		return err
	})
	if last, _ := steps(t, to); err != nil || last != "3" {
		t.Errorf("%v, the last is of step %s", err, last)
	}
	if err := os.Mkdir(f.Path()+".tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	err = f.Receive(size, askOf(from), func(string) error { t.Error("it is accepted"); return nil })
	if _, ok := errors.AsType[*Unsaved](err); !ok || !strings.HasPrefix(err.Error(), "write a checkpoint: ") {
		t.Error(err)
	}
}

// FuzzPiece asks for pieces of a checkpoint as anybody may.
func FuzzPiece(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, LastFile), []byte("all that there is"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(0), uint64(17), []byte(nil))
	f.Add(uint64(4), uint64(4), []byte(nil))
	f.Add(uint64(math.MaxUint64), uint64(1), []byte(nil))
	f.Add(uint64(0), uint64(math.MaxUint64), []byte(nil))
	f.Add(uint64(0), uint64(1), []byte{1})
	f.Add(uint64(0), uint64(1), []byte{byte(Last)})
	const limit = 16
	f.Fuzz(func(t *testing.T, at, n uint64, more []byte) {
		question := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at), n)
		b, err := ReadPiece(dir, append(question, more...), limit)
		if inside := (len(more) == 0 || len(more) == 1 && more[0] == byte(Last)) && n > 0 && n <= limit && at <= 17-n; (err == nil) != inside || inside && string(b) != "all that there is"[at:at+n] {
			t.Errorf("%d bytes from %d on are %q, %v", n, at, b, err)
		}
		if err != nil && !errors.Is(err, peer.ErrRefused) {
			t.Error(err)
		}
	})
}
