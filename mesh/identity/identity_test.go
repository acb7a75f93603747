package identity

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// place is a directory for an identity, which does not exist yet.
func place(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "identity") }

func found(t testing.TB, opts Options) *Identity {
	t.Helper()
	i, err := Found(place(t), "first", opts)
	must(t, err)
	return i
}

func request(t testing.TB, dir string) *Request {
	t.Helper()
	r, err := NewRequest(dir, "second")
	must(t, err)
	return r
}

// grant is the founder's answer to a request.
func grant(t testing.TB, founder *Identity, r *Request) Grant {
	t.Helper()
	chain, err := founder.Sign(r.CSR(), r.ID(), time.Now())
	must(t, err)
	return Grant{MeshID: founder.MeshID(), Chain: chain, Keys: founder.GossipKeys()}
}

func admit(t testing.TB, founder *Identity) *Identity {
	t.Helper()
	r := request(t, place(t))
	i, err := r.Accept(grant(t, founder, r), founder.CAHash())
	must(t, err)
	return i
}

// same says whether two identities are one, as far as files can tell.
func same(a, b *Identity) bool {
	ak, bk := a.GossipKeys(), b.GossipKeys()
	if len(ak) != len(bk) {
		return false
	}
	for i := range ak {
		if ak[i].Serial != bk[i].Serial || string(ak[i].Key) != string(bk[i].Key) {
			return false
		}
	}
	return a.ID() == b.ID() && a.Name() == b.Name() && a.MeshID() == b.MeshID() && a.CAHash() == b.CAHash() &&
		a.ResetKey() == b.ResetKey() && a.PublicKeyHash() == b.PublicKeyHash() && a.HasCAKey() == b.HasCAKey() &&
		a.NotAfter().Equal(b.NotAfter())
}

func TestFoundIsLoadedAgain(t *testing.T) {
	i := found(t, Options{})
	if !validID(i.ID()) || !validID(i.MeshID()) || i.ID() == i.MeshID() {
		t.Fatalf("ids %q and %q", i.ID(), i.MeshID())
	}
	if !i.HasCAKey() || i.Name() != "first" || i.ResetKey() == [32]byte{} {
		t.Fatalf("incomplete: %+v", i)
	}
	if keys := i.GossipKeys(); len(keys) != 1 || keys[0].Serial != 1 || len(keys[0].Key) != 32 {
		t.Fatalf("gossip keys %v", keys)
	}
	again, err := Load(i.dir+"/", Options{})
	must(t, err)
	if !same(i, again) {
		t.Fatal("what was loaded is not what was founded")
	}
	if _, err := Found(i.dir+"/", "other", Options{}); !errors.Is(err, ErrExists) {
		t.Fatalf("founded over an identity: %v", err)
	}
}

func TestFilesAreForTheOwnerAlone(t *testing.T) {
	i := found(t, Options{})
	must(t, i.SetGossipKeys([]GossipKey{NewGossipKey(2)}))
	second := admit(t, i)
	key, err := i.CAKey()
	must(t, err)
	must(t, second.AdoptCAKey(key))
	pending := place(t)
	request(t, pending)
	for _, dir := range []string{i.dir, second.dir, filepath.Dir(pending)} {
		must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			want := os.FileMode(0o600)
			if err == nil && info.IsDir() {
				want = 0o700
			}
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("%s has mode %o", path, info.Mode().Perm())
			}
			return err
		}))
	}
}

func TestLifeOfCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if i := found(t, Options{}); i.Life() != 90*24*time.Hour || i.RenewIn() != time.Until(begin.Add(45*24*time.Hour)) {
			t.Fatalf("by default a certificate lives %s and is renewed in %s", i.Life(), i.RenewIn())
		}
		first := found(t, Options{LeafLife: 10 * time.Hour})
		second := admit(t, first)
		key, err := first.CAKey()
		must(t, err)
		must(t, second.AdoptCAKey(key))
		time.Sleep(5 * time.Hour)
		third := admit(t, second) // signed by one that was never told how long
		if third.Life() != 10*time.Hour || !third.NotAfter().Equal(begin.Add(15*time.Hour)) {
			t.Fatalf("the third certificate lives %s until %s", third.Life(), third.NotAfter())
		}
		told, err := Load(second.dir, Options{LeafLife: time.Hour})
		must(t, err)
		if i := admit(t, told); i.Life() != time.Hour {
			t.Fatalf("a signer told to sign for an hour signed for %s", i.Life())
		}
	})
}

func TestAuthorityKeyIsAdopted(t *testing.T) {
	first := found(t, Options{})
	second := admit(t, first)
	r := request(t, place(t))
	_, err := second.Sign(r.CSR(), r.ID(), time.Now())
	wantError(t, err, ErrNoCAKey)
	_, err = second.CAKey()
	wantError(t, err, ErrNoCAKey)

	foreign, err := found(t, Options{}).CAKey()
	must(t, err)
	for what, key := range map[string][]byte{"another mesh's": foreign, "none": nil, "garbage": []byte("garbage")} {
		if err := second.AdoptCAKey(key); !errors.Is(err, ErrWrongCAKey) {
			t.Errorf("%s: adopted: %v", what, err)
		}
	}
	if second.HasCAKey() {
		t.Fatal("a refused key is held")
	}

	key, err := first.CAKey()
	must(t, err)
	must(t, second.AdoptCAKey(key))
	must(t, second.AdoptCAKey(key))
	again, err := Load(second.dir, Options{})
	must(t, err)
	third := admit(t, again)
	if third.MeshID() != first.MeshID() || third.CAHash() != first.CAHash() {
		t.Fatal("the third node is in another mesh")
	}
}

func TestSignRefuses(t *testing.T) {
	i := found(t, Options{})
	r := request(t, place(t))
	forged := append([]byte(nil), r.CSR()...)
	forged[len(forged)-1] ^= 1
	for what, c := range map[string]struct {
		csr []byte
		id  string
	}{
		"an empty request":           {nil, r.ID()},
		"a request not by its key":   {forged, r.ID()},
		"a key of another kind":      {ecdsaRequest(t), r.ID()},
		"a huge request":             {make([]byte, 1<<20), r.ID()},
		"no id":                      {r.CSR(), ""},
		"an id with capitals":        {r.CSR(), "00000000000000AA"},
		"an id that is another name": {r.CSR(), "example.com.0000"},
	} {
		if _, err := i.Sign(c.csr, c.id, time.Now()); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRequestKeyHash(t *testing.T) {
	first := found(t, Options{})
	r := request(t, place(t))
	hash, err := CSRKeyHash(r.CSR())
	must(t, err)
	i, err := r.Accept(grant(t, first, r), first.CAHash())
	must(t, err)
	if hash != r.PublicKeyHash() || hash != i.PublicKeyHash() || len(hash) != 64 {
		t.Fatalf("the hashes of one key: %s, %s, %s", hash, r.PublicKeyHash(), i.PublicKeyHash())
	}
	if _, err := CSRKeyHash([]byte("garbage")); !errors.Is(err, ErrRequest) {
		t.Fatal(err)
	}
}
