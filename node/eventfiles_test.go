package node_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// A node with a folder for event files writes the jobs of all nodes, and goes on with them
// when it is back.
func TestEventFilesOfAllJobs(t *testing.T) {
	inSchool(t, 2, time.Second, func(t *testing.T, c *nodetest.Cluster, _ *school.School) {
		id := started(t, c.Nodes[0], 30)
		waitState(c, c.Nodes[0], id, "running")
		writes := c.Others(named(c, jobOn(c.Nodes[0], id).Nodes[0]))[0]
		size := func() (all int64) {
			names, _ := filepath.Glob(filepath.Join(writes.Options.LogDir, id, "events.out.tfevents.*"))
			for _, name := range names {
				if info, err := os.Stat(name); err == nil {
					all += info.Size()
				}
			}
			return all
		}
		for _, epochs := range []int{5, 15} {
			if err := writes.Stop(); err != nil {
				t.Fatal(err)
			}
			if writes.Options.LogDir == "" {
				writes.Options.LogDir = t.TempDir()
			}
			before := size()
			writes.Start()
			writes.WaitReady()
			c.Wait("some epochs are known", time.Minute, func() bool { return len(jobOn(writes, id).History) >= epochs })
			c.Wait("event files grow", time.Minute, func() bool { return size() > before })
		}
		if names, _ := filepath.Glob(filepath.Join(writes.Options.LogDir, id, "events.out.tfevents.*")); len(names) != 2 {
			t.Errorf("files are %v", names)
		}
	})
}
