package identity

import (
	"crypto/x509"
	"errors"
	"os"
	"testing"
	"time"
)

// successor makes a successor that all voters hold the key of.
func successor(t testing.TB, voters ...*Identity) Successor {
	t.Helper()
	s, key, err := voters[0].NewSuccessor(time.Now())
	must(t, err)
	for _, v := range voters {
		must(t, v.HoldNextCAKey(key))
	}
	return s
}

func succeeded(t testing.TB, s Successor, nodes ...*Identity) {
	t.Helper()
	for _, i := range nodes {
		fresh, err := i.Succeed(s)
		must(t, err)
		again, err := i.Succeed(s)
		must(t, err)
		if !fresh || again {
			t.Fatalf("the successor is new to %s: %v, and once more: %v", i.Name(), fresh, again)
		}
	}
}

// meets returns the errors of dials by a and by b.
func meets(a, b *Identity) error {
	return errors.Join(
		shake(a.ServerTLS(anyone), b.ClientTLS(ALPNControl, a.ID(), anyone)).err(),
		shake(b.ServerTLS(anyone), a.ClientTLS(ALPNBulk, b.ID(), anyone)).err())
}

// reloaded returns what a restart would find.
func reloaded(t testing.TB, i *Identity) *Identity {
	t.Helper()
	again, err := Load(i.dir, Options{})
	must(t, err)
	if !same(i, again) || i.Outdated() != again.Outdated() || i.HasCAKey() != again.HasCAKey() {
		t.Fatalf("%s is another after a restart", i.Name())
	}
	return again
}

func voter(t testing.TB, first *Identity) *Identity {
	t.Helper()
	v := admit(t, first)
	key, err := first.CAKey()
	must(t, err)
	must(t, v.AdoptCAKey(key))
	return v
}

// All nodes can meet at each moment of a succession, whatever they know of it, and after each
// restart. What an impostor makes with the key of the former authority opens nothing afterwards.
func TestSuccession(t *testing.T) {
	first := found(t, Options{})
	// The third was a voter once, so it has the former key.
	second, third, late := voter(t, first), voter(t, first), admit(t, first)
	all := []*Identity{first, second, third, late}
	check := func(when string) {
		t.Helper()
		for i, a := range all {
			all[i] = reloaded(t, a)
			for _, b := range all[:i] {
				if err := meets(all[i], b); err != nil {
					t.Errorf("%s: node %d and another can't meet: %v", when, i, err)
				}
			}
		}
		first, second, third, late = all[0], all[1], all[2], all[3]
	}
	stolen, former := first.caKey, first.trust.Load().newest
	stolenKey, err := first.CAKey()
	must(t, err)
	s := successor(t, first, second)
	check("before it is named")
	succeeded(t, s, first, second)
	check("named, and no certificate renewed")
	if !first.HasCAKey() || !second.HasCAKey() || first.caKey.Equal(stolen) {
		t.Fatal("who should sign by the new authority can't")
	}
	if retired, err := first.Retire(); retired || err != nil {
		t.Fatalf("with a certificate of the former authority, it is retired: %v, %v", retired, err)
	}
	renewed(t, second, first)
	renewed(t, second, second)
	check("two know of it, two do not")
	succeeded(t, s, third, late)
	renewed(t, first, third)
	check("one has an old certificate")
	renewed(t, first, late)
	for n, i := range all {
		retired, err := i.Retire()
		must(t, err)
		if !retired || i.Outdated() {
			t.Fatalf("node %d: retired %v, outdated %v", n, retired, i.Outdated())
		}
		check("one after another retires the former")
	}

	over := minted(t, third, former.cert, stolen, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) })
	if first.Accepts([]*x509.Certificate{over.current.Load().leaf}) {
		t.Error("a connection that an expired certificate of the former authority opened stays")
	}
	impostor := minted(t, third, former.cert, stolen, nil)
	for _, i := range all[:2] {
		m := shake(i.ServerTLS(anyone), impostor.ClientTLS(ALPNControl, i.ID(), anyone))
		if !errors.Is(m.serverErr, ErrForeignMesh) {
			t.Errorf("a certificate of the former authority opens a server: %v", m.serverErr)
		}
		m = shake(impostor.ServerTLS(anyone), i.ClientTLS(ALPNControl, "", anyone))
		if !errors.Is(m.clientErr, ErrForeignMesh) {
			t.Errorf("a certificate of the former authority passes as a server's: %v", m.clientErr)
		}
		if i.Accepts([]*x509.Certificate{impostor.current.Load().leaf}) || !i.Accepts([]*x509.Certificate{late.current.Load().leaf}) {
			t.Error("Accepts disagrees with the handshake")
		}
		if err := i.AdoptCAKey(stolenKey); !errors.Is(err, ErrWrongCAKey) {
			t.Errorf("the former authority's key is taken for the mesh's: %v", err)
		}
	}
	// The next one succeeds this one as well, and who reads of this one again keeps to the next.
	next := successor(t, second, first)
	succeeded(t, next, all...)
	renewed(t, first, first)
	check("another follows")
	for _, i := range all {
		if fresh, err := i.Succeed(s); fresh || err != nil || i.CASerial() != 2 {
			t.Errorf("the one before comes back: %v, %v, number %d", fresh, err, i.CASerial())
		}
	}
	check("the one before is read of")
}

// Tokens that pin the former authority let nodes in as long as that is trusted, and those that pin
// the new one from the moment when who is asked has its new certificate.
func TestJoinInASuccession(t *testing.T) {
	first := found(t, Options{})
	old := first.CAHash()
	s := successor(t, first)
	succeeded(t, s, first)
	renewed(t, first, first)
	for what, pin := range map[string][32]byte{"the former": old, "the new": first.CAHash()} {
		m := shake(first.ServerTLS(anyone), JoinTLS(pin))
		must(t, m.err())
		r := request(t, place(t))
		i, err := r.Accept(grant(t, first, r), pin)
		must(t, err)
		if err := meets(reloaded(t, i), first); err != nil || i.Outdated() || i.CAHash() != first.CAHash() {
			t.Errorf("joined by a token that pins %s authority: %v, outdated %v", what, err, i.Outdated())
		}
		_, err = i.Succeed(s)
		must(t, err)
	}
	_, err := first.Retire()
	must(t, err)
	if m := shake(first.ServerTLS(anyone), JoinTLS(old)); !errors.Is(m.clientErr, ErrForeignMesh) {
		t.Errorf("a token of the former authority still opens the mesh: %v", m.clientErr)
	}
	r := request(t, place(t))
	if _, err := r.Accept(grant(t, first, r), old); !errors.Is(err, ErrForeignMesh) {
		t.Errorf("a token of the former authority lets a node in: %v", err)
	}
}

// A successor for which the trusted authority does not stand is refused, and changes nothing.
func TestFalseSuccessor(t *testing.T) {
	first, foreign := found(t, Options{}), found(t, Options{})
	good, theirs := successor(t, first), successor(t, foreign)
	other := successor(t, first)
	cert := read(t, first.path(caFile))
	for what, s := range map[string]Successor{
		"another mesh's":        theirs,
		"another mesh's link":   {1, good.Cert, theirs.Link},
		"the link of another":   {1, good.Cert, other.Link},
		"the link in its place": {1, good.Link, good.Link},
		"a node's certificate":  {1, first.current.Load().leaf.Raw, good.Link},
		"nothing":               {},
		"garbage":               {1, []byte("garbage"), good.Link},
		"a garbled link":        {1, good.Cert, []byte("garbage")},
	} {
		if fresh, err := first.Succeed(s); fresh || !errors.Is(err, ErrSuccessor) {
			t.Errorf("%s: %v, %v", what, fresh, err)
		}
		if string(read(t, first.path(caFile))) != string(cert) || !first.HasCAKey() {
			t.Errorf("%s changed something", what)
		}
	}
	// Nobody passes by a link that another authority has made.
	succeeded(t, theirs, foreign)
	renewed(t, foreign, foreign)
	config := foreign.ClientTLS(ALPNControl, "", anyone)
	config.VerifyConnection = nil // it does not care whom it meets
	if err := shake(first.ServerTLS(anyone), config).serverErr; !errors.Is(err, ErrForeignMesh) {
		t.Errorf("a stranger with a link is let in: %v", err)
	}
}

// A node that ends between the writes of a succession goes on with it at the next start.
func TestCrashInASuccession(t *testing.T) {
	first := found(t, Options{})
	oldKey := read(t, first.path(caKeyFile))
	s := successor(t, first)
	nextKey := read(t, first.path(nextKeyFile))
	succeeded(t, s, first)
	newKey := read(t, first.path(caKeyFile))
	for what, files := range map[string][2][]byte{
		"before the key":            {oldKey, nextKey},
		"before the old is removed": {newKey, nextKey},
	} {
		write(t, first.path(caKeyFile), files[0])
		write(t, first.path(nextKeyFile), files[1])
		again, err := Load(first.dir, Options{})
		must(t, err)
		if !again.HasCAKey() || !again.caKey.Equal(first.caKey) {
			t.Errorf("%s: it can't sign", what)
		}
	}
	// Without the key it can't sign, and a damaged one is as good as none.
	write(t, first.path(caKeyFile), oldKey)
	write(t, first.path(nextKeyFile), nextKey[:len(nextKey)/2])
	again, err := Load(first.dir, Options{})
	must(t, err)
	if again.HasCAKey() {
		t.Error("a key out of nothing")
	}
	key, err := first.CAKey()
	must(t, err)
	must(t, again.AdoptCAKey(key))
	if !again.HasCAKey() {
		t.Error("the key was not taken over")
	}
	// What is kept of a successor that was never named makes no difference.
	third := found(t, Options{})
	s = successor(t, third)
	_ = successor(t, third)
	succeeded(t, s, third)
	if third.HasCAKey() {
		t.Error("it holds the key of another")
	}
	if _, err := os.Stat(third.path(caKeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key of an authority that is not trusted any more is left: %v", err)
	}
}
