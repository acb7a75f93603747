package member

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// Recovered is the result of Recover.
type Recovered struct {
	Voters []string
	// Warning is a sentence, or "".
	Warning string
}

// Recover makes the voters in file the only ones, on this node, which must not be
// running. It is for the case that more than half of the voters are lost for good. Every
// survivor needs the same file. Everything in this node's log becomes committed, whether
// it was before or not. The file is renamed, so that a command left in a script takes
// effect only once.
func Recover(path, file string, open func() (consensus.Stores, error), log *slog.Logger) (r Recovered, err error) {
	r.Voters, err = readVoters(file)
	if err != nil {
		return r, err
	}
	dir, err := OpenDir(path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	id, err := identity.Load(dir.Identity(), identity.Options{})
	if err != nil {
		return r, err
	}
	stores, kept, err := salvaged(dir, open, log)
	if err != nil {
		return r, err
	}
	if err := consensus.Recover(stores, id.ID(), r.Voters, log); err != nil {
		return r, errors.Join(err, stores.Close())
	}
	if err := stores.Close(); err != nil {
		return r, err
	}
	if kept != "" {
		if err := dir.useSalvaged(); err != nil {
			return r, err
		}
	}
	if err := dir.overcome(); err != nil {
		return r, err
	}
	if err := os.Rename(file, file+".done"); err != nil {
		return r, fmt.Errorf("recovered, but could not mark %s as used: %w; remove it yourself", file, err)
	}
	if slices.Contains(r.Voters, id.ID()) && !id.HasCAKey() {
		r.Warning = "this node never voted and holds no CA key: while it leads, no newcomer can be admitted; name former voters where some survive"
	}
	if kept != "" {
		r.Warning = strings.TrimPrefix(r.Warning+"; ", "; ") + "this node's log was damaged: " + kept + "; if the log of another survivor is whole, make only those the voters"
	}
	return r, nil
}

// salvaged opens the stores. If the log is damaged, or was set aside because it is, it makes one
// of what can be read, in a folder of its own, and says what that is. Whatever interrupts the
// rest, it can be made again: the damaged log stays, and useSalvaged is the last step.
func salvaged(dir *Dir, open func() (consensus.Stores, error), log *slog.Logger) (s consensus.Stores, kept string, err error) {
	if !dir.Behind() {
		if s, err = open(); !errors.Is(err, consensus.ErrDamaged) {
			return s, "", err
		}
		if err := dir.SetBack(err, func() error { return Aside(dir.raft()) }); err != nil {
			return s, "", err
		}
	}
	if kept, err = consensus.Salvage(dir.damaged(), dir.salvaged(), log); err != nil {
		return s, "", err
	}
	s, err = consensus.DiskStores(dir.salvaged(), log)
	return s, kept, err
}

// useSalvaged puts what was salvaged in the place of the log. What stands there can only be left
// by an earlier attempt, as the damaged log was set aside.
func (d *Dir) useSalvaged() error {
	err := os.RemoveAll(d.raft())
	if err == nil {
		err = os.Rename(d.salvaged(), d.raft())
	}
	if err == nil {
		err = syncDir(d.path)
	}
	if err != nil {
		return fmt.Errorf("put the recovered plan in its place: %w; run the same command again", err)
	}
	return nil
}

// readVoters reads one node id per line; '#' starts a comment.
func readVoters(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the voters: %w", err)
	}
	defer f.Close()
	var ids []string
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.ContainsAny(line, " \t,"):
			return nil, fmt.Errorf("%s, line %d: one node id a line, as `hopmesh members` shows them, not %q", file, n, line)
		case slices.Contains(ids, line):
			return nil, fmt.Errorf("%s, line %d: %s is named twice", file, n, line)
		default:
			ids = append(ids, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the voters from %s: %w", file, err)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s names no voter: one node id a line, as `hopmesh members` shows them", file)
	}
	return ids, nil
}
