// Package backup writes what a mesh can be begun anew from, and restores it into an empty data
// directory: the plan, the identity of a node with the keys of the mesh, and if asked for shards and
// checkpoints. The format of the file is that of package archive.
package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/backup/archive"
	"github.com/hopmesh/hopmesh/node/jobs"
	"github.com/hopmesh/hopmesh/node/member"
	"github.com/hopmesh/hopmesh/node/ongoing"
	"github.com/hopmesh/hopmesh/node/shards"
)

// Plan is the part of the replicated plan that a backup needs.
type Plan interface {
	State() *plan.State
	Servers() []plan.Server
	Term() uint64
}

// Shards is the part of this node's shards that a backup needs.
type Shards interface {
	Borrow(ctx context.Context, dataset string, list []int, folder string) error
	Confirm(ctx context.Context, dataset string, shard int, opened fs.FileInfo) error
}

var (
	_ Plan   = (*consensus.Consensus)(nil)
	_ Shards = (*shards.Keeper)(nil)
)

// Config configures a Maker. All fields are required.
type Config struct {
	Version  string // of this program
	Identity *identity.Identity
	Plan     Plan
	Shards   Shards
	// ShardFile returns the path of a shard that this node holds, and JobFolder that of a job's
	// checkpoint.
	ShardFile func(dataset string, shard int) string
	JobFolder func(plan.Job) string
	// Dir is a folder for shards that are borrowed; leftovers of a daemon that died are removed
	// there.
	Dir string
	// Answers reports whether gossip sees a node alive.
	Answers func(id string) bool
	Log     *slog.Logger
}

// Maker makes backups. Its methods may be called from any goroutine.
type Maker struct {
	cfg      Config
	underWay ongoing.Group
}

// New makes a Maker.
func New(cfg Config) *Maker { return &Maker{cfg: cfg} }

// Run waits until ctx ends, cancels all backups and waits for them.
func (m *Maker) Run(ctx context.Context) error { return m.underWay.EndWith(ctx) }

// A backup has room for any plan.
const _ = uint(archive.MaxPlan - plan.MaxSnapshot)

// part is a file of the backup and where it comes from.
type part struct {
	archive.File
	open func(ctx context.Context) (io.ReadCloser, error)
	sum  string // SHA-256 that the plan names, or ""
}

// contents is what a backup will have.
type contents struct {
	list  archive.List
	about api.Backup
	parts []part
	files []*os.File // opened to be read later
}

func (c *contents) add(name string, size int64, sum string, open func(context.Context) (io.ReadCloser, error)) {
	f := archive.File{Name: name, Bytes: size}
	c.list.Files = append(c.list.Files, f)
	c.parts = append(c.parts, part{File: f, open: open, sum: sum})
}

func (c *contents) addBytes(name string, b []byte) {
	c.add(name, int64(len(b)), "", func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
}

// Write writes a backup, and calls tell before it does. It refuses what it knows that it can't
// write before that. The plan is the one that this node knows, also without a leader.
func (m *Maker) Write(ctx context.Context, r api.BackupRequest, to io.Writer, tell func(api.Backup) error) error {
	ctx, done, err := m.underWay.Begin(ctx)
	if err != nil {
		return api.Unavailable("this node is stopping")
	}
	defer done()
	err = m.write(ctx, r, to, tell)
	if _, said := errors.AsType[*api.Error](err); err == nil || said {
		return err
	}
	if ctx.Err() != nil {
		return api.Unavailable("the backup was interrupted")
	}
	return api.Conflict("%v", err)
}

func (m *Maker) write(ctx context.Context, r api.BackupRequest, to io.Writer, tell func(api.Backup) error) error {
	var c contents
	defer func() {
		for _, f := range c.files {
			_ = f.Close() // it was only read
		}
	}()
	var opened map[string]checkpoint
	var err error
	if r.Jobs {
		if opened, err = m.checkpoints(&c); err != nil {
			return err
		}
	}
	s, err := m.keys(&c)
	if err != nil {
		return err
	}
	if err := m.datasets(&c, s, r.Datasets); err != nil {
		return err
	}
	m.jobs(&c, s, r.Jobs, opened)
	if err := tell(c.about); err != nil {
		return err
	}
	w, err := archive.NewWriter(to, c.list)
	if err != nil {
		return err
	}
	for _, p := range c.parts {
		if err := p.write(ctx, w); err != nil {
			return err
		}
	}
	return w.Close()
}

func (p *part) write(ctx context.Context, w *archive.Writer) error {
	from, err := p.open(ctx)
	if err != nil {
		return err
	}
	sum, err := w.Add(during{ctx, from})
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	if p.sum != "" && sum != p.sum {
		return fmt.Errorf("%s changed while it was read: make the backup again", p.Name)
	}
	return nil
}

// during reads until ctx ends.
type during struct {
	ctx context.Context
	io.Reader
}

func (d during) Read(p []byte) (int, error) {
	if d.ctx.Err() != nil {
		return 0, context.Cause(d.ctx)
	}
	return d.Reader.Read(p)
}

// keys adds the identity and the plan, and returns the plan.
func (m *Maker) keys(c *contents) (*plan.State, error) {
	id := m.cfg.Identity
	for {
		before := m.cfg.Plan.State()
		behind := !m.hasKeysOf(before)
		files, err := id.Files()
		if err != nil {
			return nil, err
		}
		if _, has := files[identity.CAKeyFile]; !has {
			return nil, m.noKey()
		}
		s := m.cfg.Plan.State()
		if before.Key != s.Key || before.Authority != s.Authority {
			continue // the keys may be older than this plan: a restored node would lack the newest
		}
		if behind {
			return nil, api.Conflict("node %s was away while the mesh replaced its keys, and has not got the new ones yet: ask again in a minute, or on another voter", id.Name())
		}
		b, err := plan.MarshalSnapshot(s)
		if err != nil {
			return nil, err
		}
		c.list = archive.List{
			Version: m.cfg.Version, Disk: member.Disk.Max, Mesh: s.MeshID, Node: id.ID(), Name: id.Name(), Index: s.Index, Term: m.cfg.Plan.Term(),
			Made: time.Now().UTC().Truncate(time.Second),
		}
		c.about = api.Backup{Mesh: s.MeshID, Node: id.Name(), Index: s.Index}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			c.addBytes(archive.IdentityName(name), files[name])
		}
		c.addBytes(archive.PlanName, b)
		return s, nil
	}
}

// hasKeysOf reports whether this node has the keys that the plan names. A node that was away while
// they were replaced reads the plan first, and asks others for the keys then; alone it would never
// get them.
func (m *Maker) hasKeysOf(s *plan.State) bool {
	id := m.cfg.Identity
	if s.Authority != nil && id.CASerial() < s.Authority.Serial {
		return false
	}
	return slices.ContainsFunc(id.GossipKeys(), func(k identity.GossipKey) bool { return identity.KeyDigest(k.Key) == s.Key.Digest })
}

// noKey returns the refusal of a node that can't sign: the mesh that is restored from its backup
// could admit nobody.
func (m *Maker) noKey() error {
	s := m.cfg.Plan.State()
	var voters []string
	for _, server := range m.cfg.Plan.Servers() {
		if server.Voter && server.ID != m.cfg.Identity.ID() {
			voters = append(voters, s.NameOf(server.ID))
		}
	}
	slices.Sort(voters)
	whom := "a voter, which `hopmesh members` shows"
	if len(voters) > 0 {
		whom = strings.Join(voters, " or ")
	}
	return api.Conflict("node %s has no key of the mesh's CA, so what is restored from its backup could admit no node: ask for the backup on %s", m.cfg.Identity.Name(), whom)
}

// datasets adds the shards of all datasets. One that no living node holds is refused here: a
// dataset is whole in a backup, or not in it.
func (m *Maker) datasets(c *contents, s *plan.State, asked bool) error {
	list := slices.SortedFunc(maps.Values(s.Datasets), func(a, b plan.Dataset) int { return strings.Compare(a.ID, b.ID) })
	for _, d := range list {
		switch {
		case !asked:
			c.about.Missing = append(c.about.Missing, "the shards of dataset "+d.Name)
			continue
		case d.Stage == plan.Importing:
			c.about.Missing = append(c.about.Missing, "dataset "+d.Name+", which is being imported")
			continue
		}
		c.about.Datasets = append(c.about.Datasets, d.Name)
		for i, shard := range d.Shards {
			if err := m.reachable(s, d, i); err != nil {
				return err
			}
			c.add(archive.ShardName(d.ID, i), int64(shard.Bytes), shard.SHA256, func(ctx context.Context) (io.ReadCloser, error) { return m.shard(ctx, d, i) })
		}
	}
	slices.Sort(c.about.Datasets)
	return nil
}

// reachable returns an error unless a node that holds the shard answers.
func (m *Maker) reachable(s *plan.State, d plan.Dataset, shard int) error {
	var silent []string
	for _, id := range d.HoldersOf(shard) {
		if id == m.cfg.Identity.ID() || m.cfg.Answers(id) {
			return nil
		}
		silent = append(silent, s.NameOf(id))
	}
	if len(silent) == 0 {
		return api.Conflict("shard %d of dataset %s is lost: remove the dataset or import it again, or leave out --datasets", shard, d.Name)
	}
	return api.Conflict("shard %d of dataset %s is on %s, which does not answer: start it again, or leave out --datasets", shard, d.Name, strings.Join(silent, " and on "))
}

// shard opens a shard's file: this node's, if it is whole, or one that it borrows for so long.
func (m *Maker) shard(ctx context.Context, d plan.Dataset, i int) (io.ReadCloser, error) {
	now, in := m.cfg.Plan.State().Datasets[d.ID]
	if in && now.Holds(m.cfg.Identity.ID(), i) {
		f, err := os.Open(m.cfg.ShardFile(d.ID, i))
		if err == nil {
			info, statErr := f.Stat()
			if err = statErr; err == nil {
				err = m.cfg.Shards.Confirm(ctx, d.ID, i, info)
			}
			if err == nil {
				return f, nil
			}
			_ = f.Close() // it was only read
		}
		if _, lost := errors.AsType[*shards.Unusable](err); !lost && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := os.MkdirAll(m.cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make room for what other nodes have: %w", err)
	}
	folder, err := os.MkdirTemp(m.cfg.Dir, "backup.borrowed-*")
	if err != nil {
		return nil, fmt.Errorf("make room for what other nodes have: %w", err)
	}
	b := &borrowed{folder: folder}
	if err = m.cfg.Shards.Borrow(ctx, d.ID, []int{i}, folder); err == nil {
		b.File, err = os.Open(filepath.Join(folder, graph.ShardFile(i)))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return b, nil
}

// borrowed is a file in a folder that goes with it.
type borrowed struct {
	*os.File
	folder string
}

func (b *borrowed) Close() error { return errors.Join(b.File.Close(), os.RemoveAll(b.folder)) }

// checkpoints opens those that this node keeps, by job. It is called before the plan is taken: as
// after a crash, the plan may then know more epochs than a checkpoint, and not fewer.
func (m *Maker) checkpoints(c *contents) (map[string]checkpoint, error) {
	opened := map[string]checkpoint{}
	for _, j := range m.cfg.Plan.State().JobsInOrder() {
		f, size, err := m.checkpoint(j)
		if err != nil {
			return nil, err
		}
		if f != nil {
			c.files = append(c.files, f)
			opened[j.Key] = checkpoint{f, size}
		}
	}
	return opened, nil
}

// checkpoint is an open file and its length.
type checkpoint struct {
	*os.File
	size int64
}

// jobs adds the checkpoints of the jobs of the plan.
func (m *Maker) jobs(c *contents, s *plan.State, asked bool, opened map[string]checkpoint) {
	for _, j := range s.JobsInOrder() {
		f, has := opened[j.Key]
		switch {
		case len(j.Nodes) == 0: // it has learned nothing
		case has:
			c.about.Jobs = append(c.about.Jobs, j.ID)
			c.add(archive.CheckpointName(j.ID), f.size, "", func(context.Context) (io.ReadCloser, error) { return io.NopCloser(f), nil })
		case !asked:
			c.about.Missing = append(c.about.Missing, "what job "+j.ID+" has learned")
		default:
			c.about.Missing = append(c.about.Missing, "what job "+j.ID+" has learned, "+m.keptBy(s, j))
		}
	}
}

// keptBy says where a checkpoint may be that this node has not.
func (m *Maker) keptBy(s *plan.State, j plan.Job) string {
	var others []string
	for _, id := range j.Nodes {
		if id != m.cfg.Identity.ID() {
			others = append(others, s.NameOf(id))
		}
	}
	if len(others) == 0 {
		return "which no node keeps"
	}
	return "which " + strings.Join(others, " or ") + " may keep: back up there, too, or export the model"
}

// checkpoint opens the checkpoint of a job that this node ran last. It returns no file if there is
// none, or if that is damaged.
func (m *Maker) checkpoint(j plan.Job) (*os.File, int64, error) {
	if !slices.Contains(j.Nodes, m.cfg.Identity.ID()) {
		return nil, 0, nil
	}
	path := filepath.Join(m.cfg.JobFolder(j), train.CheckpointFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the checkpoint of job %s: %w", j.ID, err)
	}
	if err := jobs.CheckModel(path); err != nil && !errors.Is(err, trained.ErrInParts) {
		m.cfg.Log.Warn("a checkpoint is left out of a backup", "job", j.ID, "err", err)
		return nil, 0, f.Close()
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
