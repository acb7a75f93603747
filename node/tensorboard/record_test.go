package tensorboard

import (
	stdbytes "bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"testing"
	"time"
)

// An event is what the decoder of these tests reads: it shares no code with the package.
type event struct {
	time    float64
	step    int
	version string
	start   bool
	values  map[string]float64
}

// decode reads a whole file, and fails the test unless all of it is in order.
func decode(t *testing.T, b []byte) (events []event) {
	t.Helper()
	masked := func(b []byte) uint32 {
		c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return (c>>15 | c<<17) + 0xa282ead8
	}
	for len(b) > 0 {
		if len(b) < 16 {
			t.Fatalf("%d bytes are left over", len(b))
		}
		n := int(binary.LittleEndian.Uint64(b))
		if got := binary.LittleEndian.Uint32(b[8:]); got != masked(b[:8]) {
			t.Fatalf("the length's sum is %x, want %x", got, masked(b[:8]))
		}
		content := b[12 : 12+n]
		if got := binary.LittleEndian.Uint32(b[12+n:]); got != masked(content) {
			t.Fatalf("the content's sum is %x, want %x", got, masked(content))
		}
		b = b[16+n:]
		events = append(events, decodeEvent(t, content))
	}
	return events
}

func decodeEvent(t *testing.T, b []byte) event {
	e := event{values: map[string]float64{}}
	message(t, b, func(field, number uint64, content []byte) {
		switch field {
		case 1:
			e.time = math.Float64frombits(number)
		case 2:
			e.step = int(number)
		case 3:
			e.version = string(content)
		case 5:
			message(t, content, func(field, _ uint64, content []byte) {
				if field != 1 {
					t.Fatalf("a summary has the field %d", field)
				}
				tag, x := "", math.NaN()
				message(t, content, func(field, number uint64, content []byte) {
					switch field {
					case 1:
						tag = string(content)
					case 2:
						x = float64(math.Float32frombits(uint32(number)))
					default:
						t.Fatalf("a value has the field %d", field)
					}
				})
				e.values[tag] = x
			})
		case 7:
			message(t, content, func(field, number uint64, _ []byte) { e.start = field == 1 && number == 1 })
		default:
			t.Fatalf("an event has the field %d", field)
		}
	})
	return e
}

func message(t *testing.T, b []byte, each func(field, number uint64, content []byte)) {
	t.Helper()
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		b = b[n:]
		switch key & 7 {
		case 0:
			x, n := binary.Uvarint(b)
			each(key>>3, x, nil)
			b = b[n:]
		case 1:
			each(key>>3, binary.LittleEndian.Uint64(b), nil)
			b = b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			each(key>>3, 0, b[n:n+int(size)])
			b = b[n+int(size):]
		case 5:
			each(key>>3, uint64(binary.LittleEndian.Uint32(b)), nil)
			b = b[4:]
		default:
			t.Fatalf("a field is of kind %d", key&7)
		}
	}
}

var noon = time.Date(2026, 5, 6, 12, 0, 0, 500_000_000, time.UTC)

func TestRecords(t *testing.T) {
	b := appendVersion(nil, noon)
	b = appendStart(b, noon, 7)
	b = appendValues(b, noon, 300, []value{{"loss", 0.25}, {"bytes/feature", 1 << 40}, {"none", 0}})
	got := decode(t, b)
	if len(got) != 3 || got[0].version != "brain.Event:2" || !got[1].start || got[1].step != 7 || got[2].step != 300 {
		t.Fatalf("%+v", got)
	}
	for _, e := range got {
		if e.time != float64(noon.UnixMicro())/1e6 {
			t.Errorf("an event is of %f", e.time)
		}
	}
	if v := got[2].values; len(v) != 3 || v["loss"] != 0.25 || v["bytes/feature"] != 1<<40 || v["none"] != 0 {
		t.Errorf("%+v", v)
	}
	// Every file that TensorBoard's own writer makes begins with these bytes.
	if begin, _ := hex.DecodeString("1800000000000000a37f4b2209"); !stdbytes.HasPrefix(b, begin) {
		t.Errorf("a file begins with %x", b[:len(begin)])
	}
}

// What is written is read again up to the last whole record, wherever it is cut off or
// spoilt.
func TestScan(t *testing.T) {
	b := appendVersion(nil, noon)
	ends := []int{len(b)}
	for step := 1; step <= 3; step++ {
		b = appendValues(b, noon, step, []value{{tagLoss, 1 / float64(step)}, {tagGeneration, 40}, {"accuracy/val", 0.5}})
		ends = append(ends, len(b))
	}
	before := mark{step: 9, loss: 1, generation: 39}
	want := func(whole int) mark {
		if whole == 0 {
			return before
		}
		return mark{whole, float32(1 / float64(whole)), 40}
	}
	wholeIn := func(length int) int {
		return max(0, len(slices.DeleteFunc(slices.Clone(ends), func(end int) bool { return end > length }))-1)
	}
	for cut := range len(b) + 1 {
		if got, err := scan(stdbytes.NewReader(b[:cut]), before); err != nil || got != want(wholeIn(cut)) {
			t.Fatalf("cut at %d it gives %+v, %v, want %+v", cut, got, err, want(wholeIn(cut)))
		}
	}
	for at := range b {
		spoilt := slices.Clone(b)
		spoilt[at] ^= 1
		if got, err := scan(stdbytes.NewReader(spoilt), before); err != nil || got != want(wholeIn(at)) {
			t.Fatalf("spoilt at %d it gives %+v, %v, want %+v", at, got, err, want(wholeIn(at)))
		}
	}
}

// A length that is right by its sum and larger than any record takes no memory.
func TestHugeRecords(t *testing.T) {
	b := binary.LittleEndian.AppendUint64(nil, largest+1)
	b = binary.LittleEndian.AppendUint32(b, sum(b))
	if _, err := readRecord(stdbytes.NewReader(b), nil); !errors.Is(err, errDamaged) {
		t.Errorf("got %v", err)
	}
}

// Events of other programs leave no mark.
func TestMarksNeedAWholeEpoch(t *testing.T) {
	for name, values := range map[string][]value{
		"nothing": nil, "loss alone": {{tagLoss, 1}}, "generation alone": {{tagGeneration, 1}}, "others": {{"x", 1}, {"y", 1}},
	} {
		if m, err := scan(stdbytes.NewReader(appendValues(nil, noon, 5, values)), mark{}); err != nil || m != (mark{}) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func FuzzScan(f *testing.F) {
	b := appendVersion(nil, noon)
	b = appendValues(b, noon, 1, []value{{tagLoss, 0.5}, {tagGeneration, 3}})
	f.Add(b, false)
	f.Add([]byte{0x10, 5, 0x2a, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, framed bool) {
		if framed {
			b = appendRecord(nil, b) // as its sums would hide most
		}
		m, err := scan(stdbytes.NewReader(b), mark{})
		if err != nil || m.step < 0 || m.generation > 1<<53 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
