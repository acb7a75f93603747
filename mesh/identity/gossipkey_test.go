package identity

import (
	"errors"
	"testing"
)

func TestGossipKeysAreKept(t *testing.T) {
	i := found(t, Options{})
	old := i.GossipKeys()[0]
	ring := []GossipKey{NewGossipKey(2), old}
	must(t, i.SetGossipKeys(ring))
	ring[0].Key[0] ^= 1 // the caller's copy is its own
	i.GossipKeys()[1].Key[0] ^= 1
	again, err := Load(i.dir, Options{})
	must(t, err)
	if !same(i, again) {
		t.Fatal("disk and memory differ")
	}
	if keys := again.GossipKeys(); len(keys) != 2 || keys[0].Serial != 2 || KeyDigest(keys[1].Key) != KeyDigest(old.Key) {
		t.Fatalf("loaded %v", keys)
	}
}

func TestGossipKeysRefused(t *testing.T) {
	i := found(t, Options{})
	before := KeyDigest(i.GossipKeys()[0].Key)
	k := NewGossipKey(2)
	many := make([]GossipKey, maxGossipKeys+1)
	for n := range many {
		many[n] = NewGossipKey(uint64(n + 1))
	}
	for what, ring := range map[string][]GossipKey{
		"none":      nil,
		"a short":   {{Serial: 2, Key: k.Key[:16]}},
		"no serial": {{Key: k.Key}},
		"twice":     {k, {Serial: 3, Key: k.Key}},
		"too many":  many,
	} {
		if err := i.SetGossipKeys(ring); !errors.Is(err, ErrGossipKeys) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if keys := i.GossipKeys(); len(keys) != 1 || KeyDigest(keys[0].Key) != before {
		t.Fatal("a refused set changed the keys")
	}
}

func TestKeyDigestTellsKeysApart(t *testing.T) {
	a, b := NewGossipKey(1), NewGossipKey(1)
	if KeyDigest(a.Key) == KeyDigest(b.Key) || len(KeyDigest(a.Key)) != 32 {
		t.Fatalf("digests %s and %s", KeyDigest(a.Key), KeyDigest(b.Key))
	}
}
