package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/mapped/mappedtest"
)

// file writes tensors as a program would: the header, then the bytes.
func file(t *testing.T, metadata map[string]string, tensors []Tensor, data ...any) string {
	t.Helper()
	l, err := NewLayout(tensors, metadata)
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.NewBuffer(l.Header())
	for i, d := range data {
		if got := int64(b.Len()); got != l.Offset(i) {
			t.Fatalf("tensor %d is laid at %d and written at %d", i, l.Offset(i), got)
		}
		if err := binary.Write(b, binary.LittleEndian, d); err != nil {
			t.Fatal(err)
		}
	}
	if int64(b.Len()) != l.Size() {
		t.Fatalf("the file has %d bytes, not %d", b.Len(), l.Size())
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	tensors := []Tensor{
		{"long", I64, []int64{3}},
		{"floats \"ü\"", F32, []int64{2, 2}},
		{"ints", I32, []int64{1, 1}},
		{"nothing", F32, []int64{0, 1 << 62}},
		{"one", F32, []int64{}},
		{"halves", BF16, []int64{3}},
		{"bytes", U8, []int64{5}},
	}
	path := file(t, map[string]string{"format": "x", "b": "ü"}, tensors,
		[]int64{1, -2, math.MaxInt64}, []float32{1, 2, 3, 4.5}, []int32{-7}, []float32{}, []float32{9}, []uint16{1, 2, 0xffff}, []byte("hello"))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Tensors()); got != fmt.Sprint(tensors) {
		t.Errorf("listed are %s", got)
	}
	if m := f.Metadata(); len(m) != 2 || m["b"] != "ü" {
		t.Errorf("the metadata is %v", m)
	}
	see(t, f, "long", []int64{1, -2, math.MaxInt64})
	see(t, f, "floats \"ü\"", []float32{1, 2, 3, 4.5})
	see(t, f, "ints", []int32{-7})
	see(t, f, "nothing", []float32{})
	see(t, f, "one", []float32{9})
	see(t, f, "halves", []uint16{1, 2, 0xffff})
	see(t, f, "bytes", []uint8("hello"))
	for _, want := range []string{"has no tensor", "holds I64 where F32"} {
		name := map[bool]string{true: "absent", false: "long"}[want == "has no tensor"]
		if _, _, err := View[float32](f, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if !f.Has("one") || f.Has("absent") {
		t.Error("Has is wrong")
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func see[T Element](t *testing.T, f *File, name string, want []T) {
	t.Helper()
	got, _, err := View[T](f, name)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s is %v, %v and should be %v", name, got, err, want)
	}
}

func TestDataIsAligned(t *testing.T) {
	for n := range 70 {
		l, err := NewLayout([]Tensor{{strings.Repeat("x", n), F32, []int64{1}}}, nil)
		if err != nil || l.Offset(0)%align != 0 {
			t.Errorf("a header that is %d longer puts data at %d, %v", n, l.Offset(0), err)
		}
	}
}

func TestLayoutsThatCannotBe(t *testing.T) {
	for want, tensors := range map[string][]Tensor{
		"unknown type":           {{"a", "F8", []int64{1}}},
		"negative dimension":     {{"a", F32, []int64{-1}}},
		"stands twice":           {{"a", F32, []int64{1}}, {"a", F32, []int64{1}}},
		`"__metadata__" stands`:  {{"__metadata__", F32, []int64{1}}},
		"larger elements first":  {{"a", U8, []int64{1}}, {"b", F32, []int64{1}}},
		"larger than any file":   {{"a", F32, []int64{1 << 40, 1 << 40}}},
		`"b" is larger than any`: {{"a", I64, []int64{1 << 58}}, {"b", I64, []int64{1 << 59}}},
		"larger than the":        {{strings.Repeat("a", maxHeader), F32, []int64{1}}},
	} {
		if _, err := NewLayout(tensors, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q was expected: %v", want, err)
		}
	}
}

// whole puts a length before a header, and data behind it.
func whole(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// wrong are files that are refused, by a part of the sentence.
var wrong = []struct {
	want string
	file []byte
}{
	{"are no safetensors file", nil},
	{"are no safetensors file", []byte("1234567")},
	{"claims a header of 8 bytes in a file of 8", []byte{8, 0, 0, 0, 0, 0, 0, 0}},
	{"claims a header of 18446744073709551615 bytes", append(bytes.Repeat([]byte{255}, 8), make([]byte, 100)...)},
	{"claims a header of 16777217", append([]byte{1, 0, 0, 1, 0, 0, 0, 0}, make([]byte, maxHeader+100)...)},
	{"does not begin with {", whole("", 0)},
	{"does not begin with {", whole(" {}", 0)},
	{"does not begin with {", whole("[]", 0)},
	{"not the JSON", whole("{", 0)},
	{"not the JSON", whole(`{"a":3}`, 0)},
	{"not the JSON", whole(`{"a" {}}`, 0)},
	{"not the JSON", whole(`{"__metadata__":{"a":1}}`, 0)},
	{"not the JSON", whole(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4)},
	{"not the JSON", whole(`{"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}}`, 4)},
	{"not the JSON", whole(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}}`, 4)},
	{"goes on after its JSON", whole(`{} x`, 0)},
	{"goes on after its JSON", whole(`{}{}`, 0)},
	{`names "a" twice`, whole(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2)},
	{`names "__metadata__" twice`, whole(`{"__metadata__":{},"__metadata__":{}}`, 0)},
	{"lacks its shape", whole(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1)},
	{"lacks its shape or its two offsets", whole(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1)},
	{"unknown type", whole(`{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, 8)},
	{"its shape takes 4", whole(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}}`, 5)},
	{"lies in bytes 4 to 0", whole(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4)},
	{"lies in bytes -4 to 0", whole(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, 4)},
	{"negative dimension", whole(`{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}`, 4)},
	{"larger than any file", whole(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0)},
	{"overlap, or leave a hole", whole(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3)},
	{"overlap, or leave a hole", whole(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3)},
	{"tells of 1 bytes and the file holds 2", whole(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 2)},
	{"tells of 3 bytes and the file holds 2", whole(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}`, 2)},
}

func TestWrongFilesAreRefused(t *testing.T) {
	for _, c := range wrong {
		path := filepath.Join(t.TempDir(), "wrong.safetensors")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "open "+path+": ") {
			t.Errorf("%.100q: %v, and %q was expected", c.file, err, c.want)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
	if _, err := Open("/absent"); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "open /absent: ") {
		t.Error(err)
	}
}

func TestTensorsOutOfOrderAreFound(t *testing.T) {
	f, err := parse(whole(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}} `, 3))
	if err != nil || f.Tensors()[0].Name != "a" {
		t.Error(f, err)
	}
}

func TestUnalignedTensorsAreNotViewed(t *testing.T) {
	header := `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}`
	header += strings.Repeat(" ", 8-len(header)%8)
	f, err := parse(whole(header, 5))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := View[float32](f, "b"); err == nil || !strings.Contains(err.Error(), "not a multiple of its elements") {
		t.Error(err)
	}
}

func FuzzHeader(f *testing.F) {
	for _, c := range wrong {
		if len(c.file) < 1000 {
			f.Add(c.file)
		}
	}
	f.Add(whole(`{"__metadata__":{"format":"x"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}  `, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse(b)
		if err != nil {
			return
		}
		total := int64(0)
		for _, tensor := range file.Tensors() {
			n, err := tensor.bytes()
			if err != nil {
				t.Fatal(err)
			}
			total += n
			_, _, _ = View[float32](file, tensor.Name)
			_, _, _ = View[int64](file, tensor.Name)
			_, _, _ = View[int32](file, tensor.Name)
			_, _, _ = View[uint16](file, tensor.Name)
			_, _, _ = View[uint8](file, tensor.Name)
		}
		if total > int64(len(b)) {
			t.Errorf("tensors of %d bytes lie in %d", total, len(b))
		}
	})
}

// A file that is cut short while its header is read is an error, whoever opens it.
func TestAHeaderThatIsCutShort(t *testing.T) {
	b := mappedtest.Cut(t, 3<<14, 0)
	if _, err := guarded(b); !errors.Is(err, mapped.ErrUnreadable) {
		t.Error(err)
	}
}
