package identity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var allFiles = []string{nodeFile, caFile, caKeyFile, leafFile, resetFile, keyringFile}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	must(t, os.WriteFile(path, b, 0o600))
}

func TestNoIdentity(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{place(t), empty} {
		_, err := Load(dir, Options{})
		wantError(t, err, ErrNone)
	}
	// A directory that the operator made beforehand is no obstacle.
	i, err := Found(empty, "first", Options{})
	must(t, err)
	again, err := Load(empty, Options{})
	must(t, err)
	if !same(i, again) {
		t.Fatal("what was loaded is not what was founded")
	}
}

// A crash at any write before the directory appears leaves nothing that loads,
// and nothing that stands in the way.
func TestCrashWhileFounding(t *testing.T) {
	whole := found(t, Options{})
	for n := range allFiles {
		dir := place(t)
		must(t, os.MkdirAll(dir+newSuffix, 0o700))
		for _, name := range allFiles[:n+1] {
			write(t, filepath.Join(dir+newSuffix, name), read(t, whole.path(name)))
		}
		_, err := Load(dir, Options{})
		wantError(t, err, ErrNone)
		i, err := Found(dir, "first", Options{})
		must(t, err)
		if i.ID() == whole.ID() {
			t.Fatal("a half-written identity was taken over")
		}
		if _, err := os.Stat(dir + newSuffix); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the half-written directory is still there: %v", err)
		}
	}
}

func TestFileMissing(t *testing.T) {
	for _, name := range allFiles {
		i := found(t, Options{})
		must(t, os.Remove(i.path(name)))
		again, err := Load(i.dir, Options{})
		if name == caKeyFile {
			must(t, err) // most nodes have none
			if again.HasCAKey() {
				t.Error("a key out of nothing")
			}
			continue
		}
		wantDamaged(t, err, i.path(name))
		if _, err := Found(i.dir, "first", Options{}); !errors.Is(err, ErrExists) {
			t.Errorf("without %s, founded over what is left: %v", name, err)
		}
	}
}

func TestFileCutOff(t *testing.T) {
	i := found(t, Options{})
	for _, name := range allFiles {
		b := read(t, i.path(name))
		for n := range b {
			write(t, i.path(name), b[:n])
			again, err := Load(i.dir, Options{})
			if err == nil && !same(i, again) {
				t.Fatalf("%s with %d of %d bytes loads as another identity", name, n, len(b))
			}
			if err != nil {
				wantDamaged(t, err, i.path(name))
			} else if n < len(b)-1 {
				t.Errorf("%s with %d of %d bytes loads", name, n, len(b))
			}
		}
		write(t, i.path(name), b)
	}
}

func TestFileDamaged(t *testing.T) {
	i, foreign := found(t, Options{}), found(t, Options{})
	friend := admit(t, i)
	key, err := foreign.CAKey()
	must(t, err)
	for _, c := range []struct {
		name, what string
		content    []byte
		blamed     string // the first that does not fit those before it, if another
	}{
		{nodeFile, "of another mesh", read(t, foreign.path(nodeFile)), caFile},
		{nodeFile, "of another node", read(t, friend.path(nodeFile)), leafFile},
		{nodeFile, "without a name", []byte(`{"mesh":"0000000000000000","id":"0000000000000000"}`), ""},
		{caFile, "of another mesh", read(t, foreign.path(caFile)), ""},
		{caFile, "a node's", read(t, i.path(leafFile)), ""},
		{caFile, "twice", bytes.Repeat(read(t, i.path(caFile)), 2), ""},
		{leafFile, "of another mesh", read(t, foreign.path(leafFile)), ""},
		{leafFile, "of another node", read(t, friend.path(leafFile)), ""},
		{leafFile, "with another's key", mix(t, friend.path(leafFile), i.path(leafFile)), ""},
		{caKeyFile, "of another mesh", read(t, foreign.path(caKeyFile)), ""},
		{caKeyFile, "a node's", read(t, i.path(leafFile)), ""},
		{caKeyFile, "not in PEM", key, ""},
		{resetFile, "too long", append([]byte("00"), read(t, i.path(resetFile))...), ""},
		{keyringFile, "without a key", []byte("[]"), ""},
		{keyringFile, "huge", make([]byte, maxFile+1), ""},
	} {
		good := read(t, i.path(c.name))
		write(t, i.path(c.name), c.content)
		if _, err := Load(i.dir, Options{}); err == nil {
			t.Errorf("%s, %s, loads", c.name, c.what)
		} else {
			wantDamaged(t, err, i.path(cmp.Or(c.blamed, c.name)))
		}
		write(t, i.path(c.name), good)
	}
	_, err = Load(i.dir, Options{})
	must(t, err)
}

// A bit that flips anywhere in a file is found, or changes nothing. Which gossip keys are right is
// for the plan to say.
func TestFlippedBits(t *testing.T) {
	i := found(t, Options{})
	r := rand.New(rand.NewPCG(18, 3))
	for _, name := range allFiles {
		whole, named := read(t, i.path(name)), 0
		const places = 100
		for range places {
			b := bytes.Clone(whole)
			at, bit := r.IntN(len(b)), r.IntN(8)
			b[at] ^= 1 << bit
			write(t, i.path(name), b)
			again, err := Load(i.dir, Options{})
			if err != nil {
				wantError(t, err, ErrDamaged)
				named++
				continue
			}
			if name == keyringFile {
				again.keys = i.keys
			}
			if !same(i, again) {
				t.Errorf("bit %d of byte %d of %s makes it another identity in silence", bit, at, name)
			}
		}
		write(t, i.path(name), whole)
		t.Logf("%s: %d places, %d named, %d without effect", name, places, named, places-named)
	}
}

// The version before wrote node.json without digests, and reads what it knows of this one's.
func TestNodeFileOfTheVersionBefore(t *testing.T) {
	i := found(t, Options{})
	var before struct {
		Mesh string `json:"mesh"`
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	must(t, json.Unmarshal(read(t, i.path(nodeFile)), &before))
	if before.Mesh != i.MeshID() || before.ID != i.ID() || before.Name != i.Name() {
		t.Errorf("it reads %+v", before)
	}
	b, err := json.Marshal(before)
	must(t, err)
	write(t, i.path(nodeFile), b)
	again, err := Load(i.dir, Options{})
	must(t, err)
	if !same(i, again) {
		t.Error("it is another identity")
	}
	files, err := again.Files() // as a backup has them
	must(t, err)
	for name, b := range files {
		write(t, i.path(name), b)
	}
	again, err = Load(i.dir, Options{})
	must(t, err)
	if !same(i, again) {
		t.Error("restored, it is another identity")
	}
}

// mix is the key in one file with the certificate in another.
func mix(t testing.TB, key, cert string) []byte {
	t.Helper()
	const end = "-----END PRIVATE KEY-----\n"
	k, _, _ := strings.Cut(string(read(t, key)), end)
	_, c, _ := strings.Cut(string(read(t, cert)), end)
	return []byte(k + end + c)
}

func wantDamaged(t testing.TB, err error, path string) {
	t.Helper()
	wantError(t, err, ErrDamaged)
	if !strings.HasPrefix(err.Error(), path+" is damaged") || !strings.Contains(err.Error(), "move the whole data directory away") {
		t.Errorf("the error does not say which file, or what to do: %v", err)
	}
}

// block makes the next replacement of a file fail.
func block(t testing.TB, path string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(path+tempSuffix, "x"), 0o700))
}

// What the disk does not take is not in force either.
func TestWriteFails(t *testing.T) {
	first := found(t, Options{})
	i := admit(t, first)
	key, err := first.CAKey()
	must(t, err)
	before, err := Load(i.dir, Options{})
	must(t, err)
	for _, name := range []string{keyringFile, caKeyFile, leafFile} {
		block(t, i.path(name))
	}
	r, err := i.Renew()
	must(t, err)
	chain, err := first.Sign(r.CSR(), i.ID(), first.NotAfter().Add(-first.Life()))
	must(t, err)
	for what, err := range map[string]error{
		"gossip keys":         i.SetGossipKeys([]GossipKey{NewGossipKey(2)}),
		"the authority's key": i.AdoptCAKey(key),
		"a renewal":           r.Adopt(chain),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if !same(before, i) {
		t.Fatal("memory is ahead of the disk")
	}
	after, err := Load(i.dir, Options{})
	must(t, err)
	if !same(before, after) {
		t.Fatal("the disk has changed")
	}
}

func TestNowhereToWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	dir := filepath.Join(file, "identity")
	if _, err := Found(dir, "first", Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("founded in a file: %v", err)
	}
	if _, err := NewRequest(dir, "first"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a request in a file: %v", err)
	}
}

func TestErase(t *testing.T) {
	i := found(t, Options{})
	must(t, os.MkdirAll(i.dir+goneSuffix, 0o700)) // of an erasure that was interrupted
	write(t, filepath.Join(i.dir+goneSuffix, caKeyFile), []byte("secret"))
	must(t, Erase(i.dir+"/"))
	_, err := Load(i.dir, Options{})
	wantError(t, err, ErrNone)
	left, err := os.ReadDir(filepath.Dir(i.dir))
	must(t, err)
	if len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
	must(t, Erase(i.dir))
	if again := request(t, i.dir); again.ID() == i.ID() {
		t.Fatal("an erased id came back")
	}
}
