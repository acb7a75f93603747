package identity

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzFiles reads files of an identity that somebody has changed, each by itself. None may
// panic, or become an identity of another node or mesh.
func FuzzFiles(f *testing.F) {
	i := found(f, Options{})
	names := []string{nodeFile, caFile, leafFile, resetFile, keyringFile, caKeyFile}
	for n, name := range names {
		b, err := os.ReadFile(filepath.Join(i.dir, name))
		must(f, err)
		f.Add(uint8(n), b)
		f.Add(uint8(n), b[:len(b)/2])
	}
	successor := found(f, Options{})
	s, _, err := successor.NewSuccessor(time.Now())
	must(f, err)
	_, err = successor.Succeed(s)
	must(f, err)
	f.Add(uint8(1), successor.trust.Load().marshal())
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		again, err := Load(i.dir, Options{})
		must(t, err)
		id, mesh := again.ID(), again.MeshID()
		switch names[int(which)%len(names)] {
		case nodeFile:
			if again.readNode(b) == nil && (!validID(again.id) || !validID(again.MeshID()) || again.name == "") {
				t.Fatalf("%q names no node", b)
			}
			return
		case caFile:
			err = again.readCA(b)
		case leafFile:
			err = again.readLeaf(b)
		case resetFile:
			err = again.readReset(b)
		case keyringFile:
			err = again.readKeyring(b)
		case caKeyFile:
			err = again.readCAKey(b)
		}
		if err == nil && (again.ID() != id || again.MeshID() != mesh) {
			t.Fatalf("%q makes it node %s of mesh %s", b, again.ID(), again.MeshID())
		}
	})
}
