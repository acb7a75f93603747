package consensus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// The checksum of an entry is made by the leader that first stores the entry, and stays with it:
// it travels to the followers and lies beside the entry on every disk. So it covers every disk
// and memory that the entry passes, not only the last one. It stands in the entry's extensions,
// which Raft leaves to its users.
const (
	sumVersion = 1
	sumBytes   = 16 // of SHA-256
)

var errSum = errors.New("its checksum is wrong")

// sumOf returns the extensions of an entry: the version of the checksum and the checksum of what
// the entry says.
func sumOf(l *raft.Log) []byte {
	h := sha256.New()
	head := binary.BigEndian.AppendUint64([]byte("hopmesh entry"), l.Index)
	head = append(binary.BigEndian.AppendUint64(head, l.Term), byte(l.Type))
	h.Write(head)
	h.Write(l.Data)
	return h.Sum([]byte{sumVersion})[:1+sumBytes]
}

// checkSum returns an error unless an entry has the right checksum.
func checkSum(l *raft.Log) error {
	switch {
	case len(l.Extensions) == 0:
		return errors.New("it has no checksum")
	case !bytes.Equal(l.Extensions, sumOf(l)):
		return errSum
	}
	return nil
}

// sealedLog gives entries their checksums and returns only those that have kept them.
type sealedLog struct{ raft.LogStore }

var (
	_ raft.LogStore          = sealedLog{}
	_ raft.MonotonicLogStore = sealedLog{}
)

// Sealed returns a log that keeps its entries in another one, each with a checksum.
func Sealed(s raft.LogStore) raft.LogStore { return sealedLog{s} }

func (s sealedLog) IsMonotonic() bool {
	m, is := s.LogStore.(raft.MonotonicLogStore)
	return is && m.IsMonotonic()
}

func (s sealedLog) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs refuses entries that have changed on their way from the leader. Entries without a
// checksum are new, or come from a leader of the version before.
func (s sealedLog) StoreLogs(logs []*raft.Log) error {
	sealed := make([]*raft.Log, len(logs))
	for i, l := range logs {
		sealed[i] = l
		if len(l.Extensions) == 0 {
			c := *l
			c.Extensions = sumOf(l)
			sealed[i] = &c
		} else if err := checkSum(l); err != nil {
			return fmt.Errorf("entry %d of the plan's log has changed on its way here: %w", l.Index, err)
		}
	}
	return s.LogStore.StoreLogs(sealed)
}

// GetLog returns raft.ErrLogNotFound unchanged. A damaged length makes the write-ahead log's
// decoder panic.
func (s sealedLog) GetLog(index uint64, l *raft.Log) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("entry %d of the plan's log can't be read: %v", index, p)
		}
	}()
	if err := s.LogStore.GetLog(index, l); err != nil {
		return err
	}
	if l.Index != index {
		return fmt.Errorf("entry %d of the plan's log calls itself %d", index, l.Index)
	}
	if err := checkSum(l); err != nil {
		return fmt.Errorf("entry %d of the plan's log: %w", index, err)
	}
	return nil
}
