package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

var params = []nn.Param{{Name: "weight", Rows: 2, Cols: 3}, {Name: "bias", Rows: 1, Cols: 3, Offset: 6}}

var (
	first  = []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	second = []float32{10, 20, 30, 40, 50, 60, 70, 80, 90}
)

func numbers(prefix string, row []float32, of ...nn.Param) Section {
	return Section{Prefix: prefix, Read: func([]float32) []float32 { return row }, Params: of}
}

func noFault() error { return nil }

// written is a file of two rows of numbers, of the second of which it has the bias alone.
func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	sections := []Section{numbers("", first, params...), numbers("old.", second, params[1])}
	if err := Write(&b, sections, map[string]string{"epoch": "12", "recipe": `{"lr":1}`}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	b := written(t)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*File, error){
		"mapped": func() (*File, error) { return Open(path) },
		"parsed": func() (*File, error) { return Parse("it", b) },
	} {
		f, err := open()
		if err != nil {
			t.Fatal(name, err)
		}
		if row, err := f.Row("", params, 9); err != nil || !slices.Equal(row, first) {
			t.Errorf("%s: %v, %v", name, row, err)
		}
		if row, err := f.Row("old.", params[1:], 9); err != nil || !slices.Equal(row, []float32{0, 0, 0, 0, 0, 0, 70, 80, 90}) {
			t.Errorf("%s: %v, %v", name, row, err)
		}
		if !f.Has("old.bias") || f.Has("old.weight") || f.Text("nothing") != "" {
			t.Errorf("%s: it has other tensors", name)
		}
		if f.Digest() != sha256.Sum256(b[8+binary.LittleEndian.Uint64(b):]) {
			t.Errorf("%s: the digest is %x", name, f.Digest())
		}
		if n, err := f.Uint("epoch", 12); n != 12 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		var recipe struct{ LR float64 }
		if err := f.JSON("recipe", &recipe); recipe.LR != 1 || err != nil {
			t.Errorf("%s: %v, %v", name, recipe, err)
		}
		if err := f.Close(); err != nil {
			t.Error(name, err)
		}
	}
}

func TestRowsOfADeviceAreWritten(t *testing.T) {
	device := reference.New()
	arena, err := device.NewArena(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	row := arena.Alloc(tensor.F64, 1, 9)
	device.Write32(row, second)
	var b bytes.Buffer
	if err := Write(&b, []Section{Row("x.", device, row, params[:1])}, map[string]string{}); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("it", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Row("x.", params[:1], 6); err != nil || !slices.Equal(got, second[:6]) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWhatIsNotInAFileIsRefused(t *testing.T) {
	f, err := Parse("it", written(t))
	if err != nil {
		t.Fatal(err)
	}
	row := func(prefix string, p nn.Param) error { _, err := f.Row(prefix, []nn.Param{p}, math.MaxInt); return err }
	number := func(name string, most uint64) error { _, err := f.Uint(name, most); return err }
	for want, err := range map[string]error{
		`no tensor "old.weight"`: row("old.", params[0]),
		`has the shape [2 3], and the model's is [3 2]: it is of another model`: row("", nn.Param{Name: "weight", Rows: 3, Cols: 2}),
		`its metadata has "12" for epoch, which is no number up to 11`:          number("epoch", 11),
		`its metadata has "" for step, which is no number`:                      number("step", 1),
		`its epoch is not the JSON expected: `:                                  f.JSON("epoch", new(string)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	for want, damage := range map[string]func(b []byte) []byte{
		"verify it: its numbers are not those that were written: the file is damaged": func(b []byte) []byte { b[len(b)-9] ^= 0x10; return b },
		"the file holds":                   func(b []byte) []byte { return b[:len(b)-1] },
		"cut off":                          func(b []byte) []byte { return b[:60] },
		"no safetensors":                   func([]byte) []byte { return nil },
		"neither a checkpoint nor a model": func(b []byte) []byte { return bytes.Replace(b, []byte(digestName), []byte("tensors_sha255"), 1) },
		"F32":                              func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("F32"), []byte("I32")) },
	} {
		if _, err := Parse("it", damage(written(t))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	var b bytes.Buffer
	infinite := append(slices.Clone(second[:8]), float32(math.Inf(1)))
	if err := Write(&b, []Section{numbers("old.", infinite, params[1])}, map[string]string{}); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("it", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Row("old.", params[1:], 9); err == nil || !strings.Contains(err.Error(), `"old.bias" has numbers that are not finite`) {
		t.Error(err)
	}
}

// A bit that flips anywhere in a file, its metadata included, is found, or is in no use.
func TestFlippedBitsAreFound(t *testing.T) {
	random, found := rand.New(rand.NewPCG(1, 2)), 0
	whole := written(t)
	for range 1000 {
		b := slices.Clone(whole)
		at, bit := random.IntN(len(b)), random.IntN(8)
		b[at] ^= 1 << bit
		f, err := Parse("it", b)
		if err != nil {
			found++
			continue
		}
		row, err := f.Row("", params, 9)
		old, oldErr := f.Row("old.", params[1:], 9)
		if err != nil || oldErr != nil || !slices.Equal(row, first) || !slices.Equal(old[6:], second[6:]) || f.Text("epoch") != "12" || f.Text("recipe") != `{"lr":1}` {
			t.Errorf("bit %d of byte %d is believed: %v, %v, %q", bit, at, row, old, f.Text("epoch"))
		}
	}
	t.Logf("%d of 1000 flipped bits are found, and the others change nothing", found)
}

// A file of a version that wrote no digest of its metadata is read.
func TestOlderFilesAreRead(t *testing.T) {
	b := written(t)
	f, err := Parse("it", b)
	if err != nil {
		t.Fatal(err)
	}
	digest := f.Text(aboutName)
	b = bytes.Replace(b, []byte(fmt.Sprintf("%q:%q,", aboutName, digest)), bytes.Repeat([]byte(" "), len(aboutName)+len(digest)+6), 1)
	if f, err = Parse("it", b); err != nil || f.Text(aboutName) != "" || f.Text("epoch") != "12" {
		t.Error(err)
	}
}

// A file is written whole or not at all.
func TestAFaultLeavesTheFileAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(row []float32, fault error) error {
		return WriteFile(path, []Section{numbers("", row, params...)}, map[string]string{}, func() error { return fault })
	}
	if err := write(first, nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("the device is broken")
	if err := write(second, wrong); !errors.Is(err, wrong) {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it has changed: %v", err)
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzFile opens anything. It must neither panic nor take memory by what the file claims.
func FuzzFile(f *testing.F) {
	b := written(f)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(bytes.Replace(b, []byte("[2,3]"), []byte("[3,2]"), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse("it", b)
		if err != nil {
			return
		}
		if row, err := file.Row("", params, 9); err == nil && (len(row) != 9 || !finite(row)) {
			t.Errorf("it has %v", row)
		}
		if n, err := file.Uint("epoch", 99); err == nil && n > 99 {
			t.Errorf("its epoch is %d", n)
		}
	})
}

// A section that comes in parts makes the file that it makes at once, and is read once.
func TestSectionsInParts(t *testing.T) {
	dir, reads := t.TempDir(), 0
	whole := numbers("", first, params[:1]...)
	parts := Section{Params: params[:1], Here: true, Parts: func(write func([]float32) error) error {
		reads++
		row := whole.Read(nil)[params[0].Offset:][:params[0].Rows*params[0].Cols]
		return errors.Join(write(row[:2]), write(row[2:]))
	}}
	var files [2][]byte
	for i, s := range []Section{whole, parts} {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := WriteFile(path, []Section{s}, map[string]string{"x": "y"}, noFault); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = b
	}
	if !bytes.Equal(files[0], files[1]) || reads != 1 {
		t.Errorf("read %d times, it makes another file", reads)
	}
	short := parts
	short.Parts = func(write func([]float32) error) error { return write([]float32{1}) }
	if err := WriteFile(filepath.Join(dir, "short"), []Section{short}, map[string]string{}, noFault); err == nil || !strings.Contains(err.Error(), "are missing") {
		t.Errorf("of a section that is cut short: %v", err)
	}
}

// A run that ends leaves the checkpoint of a step before beside the one before the last. Either may take the
// last one's place, and other nodes may have each.
func TestTheStepBeforeIsLeft(t *testing.T) {
	dir := t.TempDir()
	f := folder(dir)
	f.Hold()
	save(t, f, Place{1, 1, 1})
	save(t, f, Place{1, 4, 1})
	if err := f.SaveEarlier([]Section{numbers("", first, params...)}, map[string]string{"step": "3"}, noFault); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if last, before := steps(t, dir); last != "4" || before != "1" {
		t.Errorf("left are %q and %q", last, before)
	}
	for which, name := range []string{LastFile, beforeFile, backFile} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		ask := func(question []byte, limit int, _ []byte) ([]byte, error) { return ReadPiece(dir, question, limit) }
		other := folder(t.TempDir())
		err = other.Borrow(Which(which), uint64(len(want)), ask, func(path string) (err error) {
			got, err = os.ReadFile(path)
			return err
		})
		if left, _ := os.ReadDir(other.options.Dir); err != nil || !bytes.Equal(got, want) || len(left) != 0 {
			t.Errorf("borrowed of %s are %d bytes of %d, left %v, %v", name, len(got), len(want), left, err)
		}
	}
	if err := f.Return(Back); err != nil {
		t.Fatal(err)
	}
	if err := f.SaveEarlier([]Section{numbers("", first, params...)}, map[string]string{}, noFault); err != nil {
		t.Fatal(err)
	}
	if last, before := steps(t, dir); last != "3" || before != "1" {
		t.Errorf("gone back to are %q and %q", last, before)
	}
	f.Adopt(Place{1, 3, 1})
	save(t, f, Place{1, 5, 1})
	if _, err := os.Stat(f.PathOf(Back)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("all nodes have the one before, and a step's checkpoint is left: %v", err)
	}
	if err := errors.Join(f.RemoveEarlier(), f.Remove(), f.RemoveEarlier()); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("not removed is %v", left)
	}
}

// What other nodes may yet need stays as the one before, though the next checkpoint is of the same place.
func TestACheckpointOfTheSamePlaceIsKept(t *testing.T) {
	dir := t.TempDir()
	f := folder(dir)
	save(t, f, Place{1, 4, 1})
	f.Adopt(Place{1, 4, 1})
	f.Supersede()
	if last, good := f.Last(); good || !f.Superseded() || !f.Missing() {
		t.Errorf("the last is of %v", last)
	}
	if err := f.Save(Place{1, 4, 1}, []Section{numbers("", first, params...)}, map[string]string{"step": "new"}, noFault); err != nil {
		t.Fatal(err)
	}
	if last, before := steps(t, dir); last != "new" || before != "4" || f.Superseded() {
		t.Errorf("left are %q and %q", last, before)
	}
	save(t, f, Place{1, 5, 1})
	if last, before := steps(t, dir); last != "5" || before != "new" {
		t.Errorf("then %q and %q", last, before)
	}
}

// Lists of almost nothing become much memory: hundreds of bytes of an object of which the text has
// two. What is written by us says more.
func TestListsOfAlmostNothing(t *testing.T) {
	for text, want := range map[string]bool{
		`[` + strings.Repeat(`{},`, 2000) + `{}]`:                                                                   true,
		`{"history":[` + strings.Repeat(`null,`, 2000) + `{}]}`:                                                     true,
		`{"a":[` + strings.Repeat(`{"b":[{"c":1}]},`, 2000) + `{}]}`:                                                true,
		`[` + strings.Repeat(`{"epoch":12,"loss":0.123456,"seconds":12.3,"weights":"a[{},{}]\\\""},`, 2000) + `{}]`: false,
		`[` + strings.Repeat(`1,`, 9000) + `2]`:                                                                     false,
		`["` + strings.Repeat(`{},`, 2000) + `"]`:                                                                   false,
		`[` + strings.Repeat(`{},`, 500) + `{}]`:                                                                    false,
		`]]}`:                                                                                                       false,
	} {
		if got := crowded(text); got != want {
			t.Errorf("%s and so on: %t", text[:min(30, len(text))], got)
		}
	}
}
