package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
)

// Newest is the newest command that this version knows. It is the version number of the plan: all
// that a version adds to what the plan can be, a command or a field of the state, comes with a
// command of its own, whose number says who knows of it.
var Newest = KindTriples

// Silent is the newest command that a program may know which does not say what it knows when it
// joins.
const Silent = KindRetireAuthority

// May returns ErrNotAllKnow if a member does not know a command, which it would have to stop at. The
// leader proposes no such command.
func (s *State) May(c Command) error {
	if !s.New(c) {
		return nil // a node that does not know it has stopped before
	}
	var behind *Member
	for _, m := range s.Members {
		if cmp.Or(m.Knows, KindAdmit-1) < since(c) && (behind == nil || m.Name < behind.Name) {
			behind = &m
		}
	}
	if behind == nil {
		return nil
	}
	return fmt.Errorf("node %s (hopmesh %s): %w", behind.Name, cmp.Or(behind.Version, "of an unknown version"), ErrNotAllKnow)
}

// since returns the first command that only versions know which know all of c. That is c itself, or
// a later one if c has a field that came with it.
func since(c Command) Kind {
	switch c := c.(type) {
	case DefineDataset:
		switch {
		case c.About.Triples:
			return KindTriples
		case c.About.EdgeFeatures > 0:
			return KindEdges
		case c.About.Types != "":
			return KindTypes
		case c.About.Targets != "":
			return KindScheduleJob
		}
	case AssignJob:
		if c.Scheduled || c.Begins != nil {
			return KindScheduleJob
		}
	}
	return c.kind()
}

// New reports whether the plan does not need a command yet, so that a member may not know it.
func (s *State) New(c Command) bool { return since(c) > s.Needed() }

// Needed returns the newest command that a node must know to follow the plan: one that lies in its
// log or that its state has come about by.
func (s *State) Needed() Kind {
	needed := max(s.Needs, KindAdmit-1)
	if s.Binding {
		needed = max(needed, KindAdmit)
	}
	if a := s.Authority; a != nil {
		needed = max(needed, KindNameAuthority)
		if !a.Former {
			needed = max(needed, KindRetireAuthority)
		}
	}
	return needed
}

// trial has commands that only builds with tag later know, which try what nodes of a later version
// do beside those of this one.
var trial = map[Kind]func(body json.RawMessage) (Command, error){}

// Shape returns a digest of the fields that a State has, in this version of the program. States
// of equal shape have equal digests if they are equal; the digests of others say nothing about
// each other.
func Shape() string {
	h := sha256.New()
	describe(h, reflect.TypeFor[State](), map[reflect.Type]bool{})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func describe(to io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintf(to, "%s %s;", t.Kind(), t)
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			fmt.Fprintf(to, "%s %s:", f.Name, f.Tag)
			describe(to, f.Type, seen)
		}
	case reflect.Map:
		describe(to, t.Key(), seen)
		describe(to, t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(to, t.Elem(), seen)
	}
}
