package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// maxGone bounds how many former members are remembered, not counting revoked ones.
	maxGone   = 256
	maxTokens = 256
	maxText   = 256 // bytes of a name, id, version, device or digest
	// maxNumber keeps serial numbers and generations far from overflow, whatever a
	// broken node reports.
	maxNumber = 1 << 53
)

// Apply returns the state after the command in data, which Raft committed at index. It
// never changes s. If the command is refused, Apply returns an error and the state is s
// at the new index, but for Needs. ErrUnknownCommand is different: the node must stop, and the state
// returned is s itself.
func Apply(s *State, index uint64, data []byte) (*State, error) {
	c, err := Decode(data)
	if errors.Is(err, ErrUnknownCommand) {
		return s, err
	}
	same := *s
	same.Index = index
	switch {
	case errors.Is(err, ErrIgnored):
		return &same, nil
	case err != nil:
		return &same, err
	}
	if k := since(c); k > Silent && data[atFlags]&flagIgnorable == 0 {
		same.Needs = max(same.Needs, k) // even if it is refused, since it lies in the log
	}
	if _, founds := c.(Genesis); !founds && s.MeshID == "" {
		return &same, ErrNotFounded
	}
	next := same
	next.Members, next.Gone, next.Tokens = own(s.Members), own(s.Gone), own(s.Tokens)
	next.Datasets, next.Jobs = own(s.Datasets), own(s.Jobs)
	if err := c.apply(&next, index); err != nil {
		return &same, err
	}
	return &next, nil
}

// own copies a map, so that the next state may be changed while it is built. The values
// still share memory with the old state.
func own[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

// turn begins a new generation.
func (s *State) turn(index uint64) { s.Generation = max(s.Generation+1, index) }

func (c Genesis) apply(s *State, index uint64) error {
	if s.MeshID != "" {
		return ErrFounded
	}
	if err := cmp.Or(checkText("mesh id", c.MeshID), checkText("key digest", c.KeyDigest), c.First.check()); err != nil {
		return err
	}
	s.MeshID, s.Key = c.MeshID, Key{Serial: 1, Digest: c.KeyDigest}
	first := c.First
	// Logs of earlier versions must lead to the states that they led to then.
	s.Binding = first.Knows >= KindAdmit
	first.Founder, first.Token = s.Binding, ""
	s.admit(first, index)
	return nil
}

func (s *State) admit(m Member, index uint64) {
	m.Joined, m.Leaving = index, false
	s.Members[m.ID] = m
	s.turn(index)
}

func (m Member) check() error {
	if m.Memory > maxNumber || m.Speed > maxNumber {
		return fmt.Errorf("%w: memory of %d bytes, a speed of %d", ErrInvalid, m.Memory, m.Speed)
	}
	if r := m.Computes; r != (Numbers{}) && (r.Min < 1 || r.Max < r.Min) {
		return fmt.Errorf("%w: computing numbers from %d to %d", ErrInvalid, r.Min, r.Max)
	}
	return cmp.Or(checkText("id", m.ID), checkText("name", m.Name), checkText("public key", m.PublicKey),
		checkOptional("device", m.Device), checkOptional("version", m.Version), checkOptional("token", m.Token))
}

func (c AddMember) apply(s *State, index uint64) error {
	m := c.Member
	if err := m.check(); err != nil {
		return err
	}
	if in, ok := s.Members[m.ID]; ok {
		if in.PublicKey != m.PublicKey {
			return fmt.Errorf("%s: %w", m.ID, ErrIDTaken)
		}
		return nil
	}
	if s.Refused(m.ID) {
		return fmt.Errorf("%s: %w", m.ID, ErrGone)
	}
	if m.Knows < s.Needs {
		return fmt.Errorf("node %s: %w", m.Name, ErrNotAllKnow) // it could not follow the plan
	}
	if _, taken := s.MemberByName(m.Name); taken {
		return fmt.Errorf("%s: %w", m.Name, ErrNameTaken)
	}
	m.Founder = false
	m.Token = cmp.Or(m.Token, s.Gone[m.ID].Token) // one that comes back joined by it before
	delete(s.Gone, m.ID)
	s.admit(m, index)
	return nil
}

func (c UpdateMember) apply(s *State, index uint64) error {
	m, ok := s.Members[c.ID]
	if !ok {
		return fmt.Errorf("%s: %w", c.ID, ErrNoMember)
	}
	before := m
	m.Device, m.Version, m.Memory, m.Speed, m.Knows, m.Computes = c.Device, c.Version, c.Memory, c.Speed, c.Knows, c.Computes
	if err := m.check(); err != nil {
		return err
	}
	s.Members[c.ID] = m
	if m.Device != before.Device || m.Memory != before.Memory {
		s.turn(index) // its capacity has changed, so its assignments may change
	}
	return nil
}

func (c SetLeaving) apply(s *State, index uint64) error {
	m, ok := s.Members[c.ID]
	switch {
	case !ok:
		return fmt.Errorf("%s: %w", c.ID, ErrNoMember)
	case m.Leaving:
		return nil
	case s.staying() == 1:
		return fmt.Errorf("%s: %w", m.Name, ErrLastMember)
	}
	m.Leaving = true
	s.Members[c.ID] = m
	s.turn(index)
	return nil
}

// staying counts the members that are not leaving.
func (s *State) staying() int {
	n := 0
	for _, m := range s.Members {
		if !m.Leaving {
			n++
		}
	}
	return n
}

func (c RemoveMember) apply(s *State, index uint64) error {
	if err := checkText("id", c.ID); err != nil {
		return err
	}
	if c.Why.rank() == 0 {
		return fmt.Errorf("%w: removal for the reason %q", ErrInvalid, c.Why)
	}
	m, in := s.Members[c.ID]
	if in && len(s.Members) == 1 {
		return fmt.Errorf("%s: %w", m.Name, ErrLastMember)
	}
	old := s.Gone[c.ID]
	if !in && old.Why.rank() >= c.Why.rank() {
		return nil // nothing further to remove
	}
	if c.Tokens {
		for _, token := range s.TokensOf(c.ID) {
			delete(s.Tokens, token)
		}
	}
	if c.Why == Revoked {
		s.Key.Stale = true
		s.Access = nil // any of them may have been shown to it
	}
	delete(s.Members, c.ID)
	s.strike(c.ID)
	s.strikeJobs(m)
	s.Gone[c.ID] = Gone{ID: c.ID, Name: cmp.Or(m.Name, old.Name), Why: c.Why, Index: index, Token: cmp.Or(m.Token, old.Token)}
	s.forgetGone()
	s.turn(index)
	return nil
}

// forgetGone drops the oldest former members beyond maxGone that were not revoked.
func (s *State) forgetGone() {
	var list []Gone
	for _, g := range s.Gone {
		if g.Why != Revoked {
			list = append(list, g)
		}
	}
	if len(list) <= maxGone {
		return
	}
	slices.SortFunc(list, func(a, b Gone) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID)) })
	for _, g := range list[:len(list)-maxGone] {
		delete(s.Gone, g.ID)
	}
}

func (c RotateKey) apply(s *State, _ uint64) error {
	if err := checkText("key digest", c.Digest); err != nil {
		return err
	}
	switch {
	case s.Key.Previous != "":
		return ErrKeyTurning
	case c.Serial != s.Key.Serial+1 || c.Serial > maxNumber:
		return fmt.Errorf("%w: %d after %d", ErrKeySerial, c.Serial, s.Key.Serial)
	case c.Digest == s.Key.Digest:
		return fmt.Errorf("%w: the new key is the old one", ErrInvalid)
	}
	s.Key = Key{Serial: c.Serial, Digest: c.Digest, Previous: s.Key.Digest, Stale: c.AsOf > 0 && s.revokedSince(c.AsOf)}
	return nil
}

func (s *State) revokedSince(index uint64) bool {
	for _, g := range s.Gone {
		if g.Why == Revoked && g.Index > index {
			return true
		}
	}
	return false
}

func (c RetireKey) apply(s *State, _ uint64) error {
	if c.Serial != s.Key.Serial {
		return fmt.Errorf("%w: %d is in use, not %d", ErrKeySerial, s.Key.Serial, c.Serial)
	}
	s.Key.Previous = ""
	return nil
}

func (c Advance) apply(s *State, index uint64) error {
	if c.Generation > maxNumber {
		return fmt.Errorf("%w: generation %d", ErrInvalid, c.Generation)
	}
	if c.Generation >= s.Generation {
		s.Generation = c.Generation
		s.turn(index)
	}
	return nil
}

func checkText(what, text string) error {
	if text == "" {
		return fmt.Errorf("%w: no %s", ErrInvalid, what)
	}
	return checkOptional(what, text)
}

func checkOptional(what, text string) error {
	if len(text) > maxText || !utf8.ValidString(text) {
		return fmt.Errorf("%w: a %s of %d bytes, or not in UTF-8", ErrInvalid, what, len(text))
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: a %s with control characters", ErrInvalid, what)
		}
	}
	return nil
}
