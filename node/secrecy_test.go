package node_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/mesh/meshtest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/nodetest"
	"github.com/hopmesh/hopmesh/node/nodetest/school"
)

// Whoever records all packets of a mesh's whole life, from its founding to its last leave, finds
// neither names nor ids, neither tokens nor keys nor addresses, nor anything of the plan: in the
// packets themselves, and in what clients say first, which anybody can decrypt.
func TestNothingCrossesTheWireInPlain(t *testing.T) {
	nodetest.Virtual(t, 0, func(t *testing.T, c *nodetest.Cluster) {
		var wire bytes.Buffer
		var hellos meshtest.Hellos
		c.Network.Tap(func(p []byte) {
			wire.Write(append(p, '|'))
			hellos.Add(p)
		})
		secrets := map[string][]byte{"a name for a member": []byte(`"name"`), "a list of the plan": []byte(`"members"`), "a kind of node": []byte("nonvoter")}
		s := &school.School{Pace: 500 * time.Millisecond}
		token := ""
		for k := range 4 {
			i := c.Add()
			i.Name = fmt.Sprintf("lighthouse-%d", k)
			i.Options.Name, i.Options.Version = i.Name, "v3.1.4-tern"
			attended(s, i)
			if i.Options.Bootstrap = k == 0; k > 0 {
				token = c.Nodes[0].Token()
				i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, token
				parsed, err := identity.ParseToken(token)
				if err != nil {
					t.Fatal(err)
				}
				as(secrets, "the token's secret", parsed.Secret[:])
			}
			i.Start()
			i.WaitReady()
			i.Options.Bootstrap, i.Options.Join, i.Options.Token = false, nil, ""
			secrets["the name of "+i.Name] = []byte(i.Name)
			secrets["the address of "+i.Name] = []byte(i.IP())
			keysIn(t, secrets, i)
		}
		secrets["the version"] = []byte(c.Nodes[0].Options.Version)
		secrets["the token"] = []byte(token)
		c.WaitVoters(3)
		generated(t, c.Nodes[0], tiny("lagoon", 2))
		c.Wait("the dataset has its copies", time.Minute, func() bool { return copied(c.Nodes[1].Dataset("lagoon"), 2, c.Nodes...) })
		secrets["the dataset"] = []byte("lagoon")
		epochs := 6
		job, err := c.Nodes[1].API().StartJob(t.Context(), api.TrainRequest{Dataset: "lagoon", Strategy: "leap", Epochs: &epochs})
		if err != nil {
			t.Fatal(err)
		}
		waitState(c, c.Nodes[2], job, "done")
		p := c.Leader().Plan()
		as(secrets, "the mesh id", unhex(t, p.MeshID))
		for _, m := range p.Members {
			as(secrets, "the id of "+m.Name, unhex(t, m.ID))
		}
		// The leader dies and comes back, and one node leaves.
		last := c.Leader()
		last.Kill()
		c.Wait("another leader", time.Minute, func() bool {
			l := c.Others(last)[0].Status().Leader
			return l != "" && l != last.Name
		})
		last.Restart()
		last.WaitReady()
		for _, i := range c.Nodes { // voters have the authority's key by now
			keysIn(t, secrets, i)
		}
		if err := c.Nodes[3].API().Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = c.Nodes[3].Exited(time.Minute)
		c.Network.Tap(nil)

		said := hellos.All()
		t.Logf("%d bytes on the wire, %d clients' first words, %d values", wire.Len(), len(said), len(secrets))
		if wire.Len() < 500_000 || len(said) < 10 || len(secrets) < 40 {
			t.Fatalf("only %d bytes, %d first words and %d values were looked at", wire.Len(), len(said), len(secrets))
		}
		for _, b := range said {
			if !bytes.Contains(b, []byte("hopmesh-")) {
				t.Fatalf("a client's first words %q were not decrypted", b)
			}
		}
		for what, secret := range secrets {
			if len(secret) < 6 {
				t.Fatalf("%s is too short to be found: %q", what, secret)
			}
			for where, seen := range map[string][]byte{"on the wire": wire.Bytes(), "in first words": bytes.Join(said, []byte{'|'})} {
				if bytes.Contains(seen, secret) {
					t.Errorf("%s is readable %s", what, where)
				}
			}
		}
	})
}

// as adds a value in its bytes and as text.
func as(secrets map[string][]byte, what string, b []byte) {
	secrets[what] = b
	secrets[what+" as text"] = []byte(hex.EncodeToString(b))
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// keysIn adds the keys that a node has on disk.
func keysIn(t *testing.T, secrets map[string][]byte, i *nodetest.Instance) {
	t.Helper()
	dir := filepath.Join(i.Options.DataDir, "identity")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		what := f.Name() + " of " + i.Name
		switch f.Name() {
		case "reset.key":
			as(secrets, what, unhex(t, string(bytes.TrimSpace(b))))
			found++
		case "keyring.json":
			var keys []identity.GossipKey
			if err := json.Unmarshal(b, &keys); err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				as(secrets, fmt.Sprintf("%s, %d", what, k.Serial), k.Key)
				found++
			}
		default:
			for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
				if block.Type == "PRIVATE KEY" {
					as(secrets, what, block.Bytes[len(block.Bytes)-32:])
					found++
				}
			}
		}
	}
	if found < 3 {
		t.Fatalf("%s has only %d keys in %s", i.Name, found, dir)
	}
}
