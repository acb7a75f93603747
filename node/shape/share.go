package shape

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// groups is where control groups are created, in either version of cgroups.
type groups struct {
	dir    string
	second bool // cgroup v2
}

// period is the interval in which a share is enforced. It is short, so that nodes are not
// paused for long.
const period = 10 * time.Millisecond

// divide gives each node its share of the CPUs.
func (f *Field) divide() error {
	g, err := newGroups()
	if err != nil {
		return err
	}
	f.groups = g
	for i := range f.sites {
		dir := filepath.Join(g.dir, fmt.Sprint("n", i))
		if err := errors.Join(os.Mkdir(dir, 0o755), g.limit(dir, f.link.Cores)); err != nil { //nolint:gosec // of a file system where all is for all to read
			return errors.Join(err, f.undivide())
		}
		f.sites[i].group = dir
	}
	return nil
}

func (f *Field) undivide() error {
	var errs []error
	for i := range f.sites {
		dir := filepath.Join(f.groups.dir, fmt.Sprint("n", i))
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		f.sites[i].group = ""
	}
	errs = append(errs, f.groups.remove())
	f.groups = nil
	return errors.Join(errs...)
}

func newGroups() (*groups, error) {
	var tried []error
	for _, g := range []groups{{dir: "/sys/fs/cgroup/cpu"}, {dir: "/sys/fs/cgroup", second: true}} {
		probe := "cpu.cfs_quota_us"
		if g.second {
			probe = "cgroup.controllers"
		}
		if _, err := os.Stat(filepath.Join(g.dir, probe)); err != nil {
			tried = append(tried, err)
			continue
		}
		g.dir = filepath.Join(g.dir, own("g", 0))
		if err := os.Mkdir(g.dir, 0o755); err != nil { //nolint:gosec // of a file system where all is for all to read
			tried = append(tried, err)
			continue
		}
		g.prefer()
		if g.second {
			if err := write(filepath.Join(g.dir, "cgroup.subtree_control"), "+cpu"); err != nil {
				tried = append(tried, err, g.remove())
				continue
			}
		}
		return &g, nil
	}
	return nil, fmt.Errorf("no control group for processors can be made: %w", errors.Join(tried...))
}

// prefer has the kernel give nodes their shares before anything else on this machine gets
// its own, so that others' work disturbs a measurement less. Where it can't be, nodes
// compete as any process does.
func (g *groups) prefer() {
	file, most := "cpu.shares", "262144"
	if g.second {
		file, most = "cpu.weight", "10000"
	}
	_ = write(filepath.Join(g.dir, file), most) // a wish
}

func (g *groups) remove() error { return os.Remove(g.dir) }

func (g *groups) limit(dir string, cores float64) error {
	quota := strconv.FormatInt(int64(cores*float64(period.Microseconds())), 10)
	length := strconv.FormatInt(period.Microseconds(), 10)
	if g.second {
		return write(filepath.Join(dir, "cpu.max"), quota+" "+length)
	}
	return errors.Join(write(filepath.Join(dir, "cpu.cfs_period_us"), length), write(filepath.Join(dir, "cpu.cfs_quota_us"), quota))
}

func write(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) } //nolint:gosec // a file of the kernel's
