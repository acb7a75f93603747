package nodetest

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus"
)

// Disk is where a node in virtual time keeps its log. It may change what it returns.
type Disk struct {
	raft.LogStore
	mu  sync.Mutex
	rot func(l *raft.Log) bool
	lie bool
}

func diskInMemory() (consensus.Stores, *Disk) {
	s := consensus.MemoryStores()
	d := &Disk{LogStore: raft.NewInmemStore()}
	s.Log = consensus.Sealed(d)
	return s, d
}

// Rot makes the disk return entries as change leaves them, which reports whether it changed one.
// With lie the checksums are right all the same, as if the entries had been stored so.
func (i *Instance) Rot(lie bool, change func(l *raft.Log) bool) {
	i.disk.mu.Lock()
	defer i.disk.mu.Unlock()
	i.disk.rot, i.disk.lie = change, lie
}

// GetLog returns an entry, or what became of it.
func (d *Disk) GetLog(index uint64, l *raft.Log) error {
	if err := d.LogStore.GetLog(index, l); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rot == nil {
		return nil
	}
	c := *l
	c.Data = slices.Clone(l.Data)
	if !d.rot(&c) {
		return nil
	}
	if d.lie {
		fresh := raft.NewInmemStore()
		c.Extensions = nil
		if err := consensus.Sealed(fresh).StoreLog(&c); err != nil {
			return err
		}
		if err := fresh.GetLog(index, &c); err != nil {
			return err
		}
	}
	*l = c
	return nil
}
