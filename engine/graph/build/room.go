package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/targets"
)

// scratchBytes returns the size of the scratch folder in the most demanding stage.
func (p *plan) scratchBytes() uint64 {
	record := uint64(p.recordBytes())
	placed := p.stored * record
	if p.partitioner == random {
		return placed + p.stored*(record-4)
	}
	halves := p.halves * 8
	if p.weighted {
		halves += p.stored * 4
	}
	return max(halves+p.halves*4+uint64(p.vertices)*8, halves+placed, placed+p.stored*(record-4))
}

// outputBytes returns an upper bound on the total size of the shard files.
func (p *plan) outputBytes(src graph.Source, o Options) uint64 {
	meta := src.Meta()
	v, f := uint64(p.vertices), uint64(meta.Features)
	n := p.stored*uint64(p.recordBytes()-4) + p.stored*uint64(o.DType.EdgeRowBytes(meta.EdgeFeatures)) + v*16 + uint64(p.shards)*4096
	if names := src.IDs().Strings; names != nil {
		n += uint64(len(names.Bytes))
	}
	if (ofSource{src}).about().labels {
		n += uint64(targets.RowBytes(&meta)) * v
	}
	n += v * uint64(len(src.Splits()))
	value := uint64(4)
	if o.DType == graph.BF16 {
		value = 2
	}
	if p.sparse {
		return n + meta.NonZeros*(4+value) + 8*v
	}
	return n + v*f*value
}

// checkDisk returns an error if there is too little free disk space.
func (p *plan) checkDisk(o Options) error {
	out, outDevice, err := free(o.Dir)
	if err != nil {
		return err
	}
	scratch, scratchDevice, err := free(o.Scratch)
	if err != nil {
		return err
	}
	need := p.output
	if outDevice == scratchDevice {
		need += p.scratch
	} else if p.scratch > scratch {
		return fmt.Errorf("the disk of %s has %s free, and the import needs %s there meanwhile: free some or choose another folder", o.Scratch, inBytes(scratch), inBytes(p.scratch))
	}
	if need > out {
		return fmt.Errorf("the disk of %s has %s free, and the import needs %s there: free some or choose another folder", o.Dir, inBytes(out), inBytes(need))
	}
	return nil
}

// free returns the number of bytes that may be written to a folder, which need not exist
// yet, and the device it is on.
func free(folder string) (n uint64, device uint64, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return 0, 0, fmt.Errorf("look for room: %w", err)
	}
	for {
		var at unix.Stat_t
		err = unix.Stat(folder, &at)
		if err == nil {
			device = uint64(at.Dev) //nolint:unconvert // it is signed on other systems
			break
		}
		if parent := filepath.Dir(folder); errors.Is(err, os.ErrNotExist) && parent != folder {
			folder = parent
			continue
		}
		return 0, 0, fmt.Errorf("look for room in %s: %w", folder, err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, 0, fmt.Errorf("look for room in %s: %w", folder, err)
	}
	return disk.Bavail * uint64(disk.Bsize), device, nil
}
