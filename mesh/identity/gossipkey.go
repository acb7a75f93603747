package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

const (
	gossipKeySize = 32
	// maxGossipKeys is more than any rotation needs: one key in use, one being retired,
	// one being distributed.
	maxGossipKeys = 8
)

// GossipKey encrypts gossip. Serials count the rotations. Two keys may have the same
// serial if a leader died between making a key and naming it.
type GossipKey struct {
	Serial uint64 `json:"serial"`
	Key    []byte `json:"key"`
}

// NewGossipKey returns a new random key.
func NewGossipKey(serial uint64) GossipKey {
	return GossipKey{Serial: serial, Key: random(gossipKeySize)}
}

// KeyDigest identifies a key without revealing it.
func KeyDigest(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:16])
}

// random returns n unpredictable bytes. crypto/rand ends the process rather than
// return an error.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func checkGossipKeys(keys []GossipKey) error {
	if len(keys) == 0 || len(keys) > maxGossipKeys {
		return fmt.Errorf("%w: %d of them, where 1 to %d may be", ErrGossipKeys, len(keys), maxGossipKeys)
	}
	seen := map[string]bool{}
	for _, k := range keys {
		switch {
		case len(k.Key) != gossipKeySize:
			return fmt.Errorf("%w: one has %d bytes instead of %d", ErrGossipKeys, len(k.Key), gossipKeySize)
		case k.Serial == 0:
			return fmt.Errorf("%w: one has no serial", ErrGossipKeys)
		case seen[string(k.Key)]:
			return fmt.Errorf("%w: one is there twice", ErrGossipKeys)
		}
		seen[string(k.Key)] = true
	}
	return nil
}

func copyGossipKeys(keys []GossipKey) []GossipKey {
	c := slices.Clone(keys)
	for i := range c {
		c[i].Key = slices.Clone(c[i].Key)
	}
	return c
}

// GossipKeys returns the keys that this node holds, the one in use first.
func (i *Identity) GossipKeys() []GossipKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return copyGossipKeys(i.keys)
}

// SetGossipKeys replaces the keys on disk and then in memory. The one in use comes
// first.
func (i *Identity) SetGossipKeys(keys []GossipKey) error {
	if err := checkGossipKeys(keys); err != nil {
		return err
	}
	b, err := json.Marshal(keys)
	if err != nil {
		return fmt.Errorf("write the gossip keys: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := replaceFile(i.path(keyringFile), b); err != nil {
		return fmt.Errorf("save the gossip keys: %w", err)
	}
	i.keys = copyGossipKeys(keys)
	return nil
}

func parseGossipKeys(b []byte) ([]GossipKey, error) {
	var keys []GossipKey
	if err := json.Unmarshal(b, &keys); err != nil {
		return nil, fmt.Errorf("read the gossip keys: %w", err)
	}
	return keys, checkGossipKeys(keys)
}
