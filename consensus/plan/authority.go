package plan

import (
	"fmt"
	"maps"
	"time"
)

// Authority is the certificate authority that succeeded the founder's. Its certificates are
// public; its key is never in the plan.
type Authority struct {
	Serial uint64 `json:"serial"` // of its successions, from 1
	Cert   []byte `json:"cert"`   // its own certificate
	Link   []byte `json:"link"`   // the former authority's, for the same key
	// Former means that the authority before is still trusted, since nodes may still have its
	// certificates.
	Former bool      `json:"former,omitempty"`
	Named  time.Time `json:"named"` // by the leader's clock
}

type (
	// NameAuthority names a new authority. It is committed only when each voter holds its key.
	// Nodes that do not know it stop, so it is committed only as State.KnowsAuthorities says.
	NameAuthority struct {
		Serial uint64    `json:"serial"`
		Cert   []byte    `json:"cert"`
		Link   []byte    `json:"link"`
		Now    time.Time `json:"now"` // the leader's clock
	}

	// RetireAuthority ends the trust in the authority before the one with this serial number,
	// and the tokens that pin it. It is committed only when each member has a certificate of
	// the new one.
	RetireAuthority struct {
		Serial uint64 `json:"serial"`
	}
)

func (NameAuthority) kind() Kind   { return KindNameAuthority }
func (RetireAuthority) kind() Kind { return KindRetireAuthority }

// maxAuthority bounds a certificate. Real ones have some 400 bytes.
const maxAuthority = 4 << 10

// KnowsAuthorities reports whether each member is of a version that knows of successors of the
// authority.
func (s *State) KnowsAuthorities() bool {
	return s.May(RetireAuthority{}) == nil
}

// authority returns the serial number of the newest authority, 0 for the founder's.
func (s *State) authority() uint64 {
	if s.Authority == nil {
		return 0
	}
	return s.Authority.Serial
}

func (c NameAuthority) apply(s *State, _ uint64) error {
	switch {
	case s.Authority != nil && s.Authority.Former:
		return ErrAuthorityTurning
	case c.Serial <= s.authority() || c.Serial > maxNumber: // it skips those that a recovery has lost
		return fmt.Errorf("%w: %d after %d", ErrAuthoritySerial, c.Serial, s.authority())
	case len(c.Cert) == 0 || len(c.Cert) > maxAuthority || len(c.Link) == 0 || len(c.Link) > maxAuthority:
		return fmt.Errorf("%w: certificates of %d and %d bytes", ErrInvalid, len(c.Cert), len(c.Link))
	case !ordinary(c.Now):
		return fmt.Errorf("%w: a time far off", ErrInvalid)
	}
	s.Authority = &Authority{Serial: c.Serial, Cert: c.Cert, Link: c.Link, Former: true, Named: c.Now.UTC()}
	return nil
}

func (c RetireAuthority) apply(s *State, _ uint64) error {
	if s.Authority == nil || c.Serial != s.Authority.Serial {
		return fmt.Errorf("%w: %d is in force, not %d", ErrAuthoritySerial, s.authority(), c.Serial)
	}
	now := *s.Authority
	now.Former = false
	s.Authority = &now
	s.Access = s.Access.Pinning(c.Serial)
	maps.DeleteFunc(s.Tokens, func(_ string, t Token) bool { return t.Authority < c.Serial })
	return nil
}

func (a *Authority) check() error {
	if a != nil && (a.Serial == 0 || len(a.Cert) == 0 || len(a.Link) == 0) {
		return fmt.Errorf("%w: an authority without a number or certificates", ErrBadSnapshot)
	}
	return nil
}
