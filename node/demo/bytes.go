package demo

import (
	"fmt"

	"github.com/hopmesh/hopmesh/node/api"
)

// kind is a category of counted bytes.
type kind struct {
	name string
	of   func(b *api.JobBytes) *uint64
}

func kinds() []kind {
	return []kind{
		{"features", func(b *api.JobBytes) *uint64 { return &b.Feature }},
		{"topology", func(b *api.JobBytes) *uint64 { return &b.Topology }},
		{"models", func(b *api.JobBytes) *uint64 { return &b.Model }},
		{"gradients", func(b *api.JobBytes) *uint64 { return &b.Gradient }},
		{"activations", func(b *api.JobBytes) *uint64 { return &b.Activation }},
		{"shards", func(b *api.JobBytes) *uint64 { return &b.Shard }},
		{"control", func(b *api.JobBytes) *uint64 { return &b.Control }},
	}
}

func add(to *api.JobBytes, b api.JobBytes) {
	for _, k := range kinds() {
		*k.of(to) += *k.of(&b)
	}
}

func sum(b api.JobBytes) (n uint64) {
	for _, k := range kinds() {
		n += *k.of(&b)
	}
	return n
}

// size formats a number of bytes for people.
func size(n uint64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
