package evaluate

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/budget"
)

// A folder is where files are made.
type folder struct {
	dir string
	// free returns how many bytes there are for files, and whether these are memory. Tests
	// replace it.
	free func(dir string) (bytes uint64, memory bool, err error)
}

// memory reports whether files take memory.
func (f *folder) memory() bool {
	if f.dir == "" {
		return false
	}
	_, is, err := f.free(f.dir)
	return err == nil && is
}

// fits returns an error if there is too little room for files.
func (f *folder) fits(bytes uint64) error {
	if bytes == 0 {
		return nil
	}
	// What else may be wrong with the folder shows when files are made.
	if free, _, err := f.free(f.dir); err == nil && bytes > free {
		return fmt.Errorf("the rows of all vertices between two layers need %s in the folder %s, which has %s free: free some space there, or allow more memory with {agent.memory}",
			budget.Format(bytes), f.dir, budget.Format(free))
	}
	return nil
}
