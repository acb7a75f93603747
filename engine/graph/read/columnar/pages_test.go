package columnar

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

func TestClaimsOfDifferencesCostNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, head := range map[string][]uint64{"2^40 differences in a page of 1000": {128, 4, 1 << 40, 2}, "a miniblock of 2^30": {1 << 30, 1, 100, 2}, "2^30 miniblocks": {1 << 36, 1 << 30, 100, 2}} {
		var b []byte
		for _, v := range head {
			b = binary.AppendUvarint(b, v)
		}
		if _, err := readDeltas(b, 1000); !errors.Is(err, errClaims) {
			t.Errorf("%s: %v", name, err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("it took %d bytes", took)
	}
}

func TestUnknownPackingIsRefused(t *testing.T) {
	_, err := checkPacking(compress.Codecs.Lz4, 100)
	err = (&parquetField{About: About{Name: "src"}}).wrong(err)
	if _, refused := errors.AsType[Refusal](err); !refused || err.Error() != "column src: the packing (codec 5) is not known: write the file with snappy, gzip, brotli, zstd or lz4_raw" {
		t.Error(err)
	}
}
