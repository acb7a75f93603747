package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/mesh/identity"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

// newcomer asks any node to be let in, as `hopmesh agent --join` does, and may
// lie.
func newcomer(t *testing.T, c *nodetest.Cluster, at *nodetest.Instance, token, name string, lie func(*mesh.JoinRequest)) error {
	t.Helper()
	req, err := identity.NewRequest(filepath.Join(t.TempDir(), "identity"), name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := identity.ParseToken(token)
	if err != nil {
		t.Fatal(err)
	}
	socket := c.Network.Listen("10.9.9.9", 7946)
	defer socket.Close()
	r := mesh.JoinRequest{ID: req.ID(), Name: name, Version: "test", Device: "cpu", CSR: req.CSR(), Clock: time.Now()}
	if lie != nil {
		lie(&r)
	}
	grant, err := mesh.Join(t.Context(), socket, []string{at.Addr()}, parsed, r)
	if err != nil {
		return err
	}
	_, err = req.Accept(grant, parsed.CA)
	return err
}

// Any node admits, leader or not, and all refuse for the same reasons.
func TestAdmission(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		leader := c.Leader()
		follower := c.Others(leader)[0]
		good := leader.Token()
		if err := newcomer(t, c, follower, good, "fine", nil); err != nil {
			t.Fatalf("a follower did not admit: %v", err)
		}
		gone, err := leader.API().CreateToken(t.Context(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := follower.API().RevokeToken(t.Context(), gone.ID); err != nil {
			t.Fatal(err)
		}
		brief, err := leader.API().CreateToken(t.Context(), time.Minute, 0)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Minute)
		other, err := identity.ParseToken(good)
		if err != nil {
			t.Fatal(err)
		}
		other.Secret[0]++
		for name, x := range map[string]struct {
			token, name string
			lie         func(*mesh.JoinRequest)
			reason      string
			says        string
		}{
			"a guessed token":        {other.String(), "a", nil, mesh.RefusedToken, "token"},
			"a revoked token":        {gone.Token, "b", nil, mesh.RefusedToken, "token"},
			"an expired token":       {brief.Token, "c", nil, mesh.RefusedToken, "expired"},
			"a name that is taken":   {good, "n1", nil, mesh.RefusedName, "n1"},
			"a name of odd letters":  {good, "d", func(r *mesh.JoinRequest) { r.Name = "a b" }, mesh.RefusedRequest, "name"},
			"a clock ahead":          {good, "e", func(r *mesh.JoinRequest) { r.Clock = r.Clock.Add(time.Hour) }, mesh.RefusedClock, "NTP"},
			"a clock behind":         {good, "f", func(r *mesh.JoinRequest) { r.Clock = r.Clock.Add(-time.Hour) }, mesh.RefusedClock, "NTP"},
			"an odd id":              {good, "i", func(r *mesh.JoinRequest) { r.ID = "../../x" }, mesh.RefusedRequest, "hexadecimal"},
			"a request that is junk": {good, "g", func(r *mesh.JoinRequest) { r.CSR = []byte("junk") }, mesh.RefusedRequest, "certificate request"},
			"an id that is taken":    {good, "h", func(r *mesh.JoinRequest) { r.ID = leader.Plan().Members[0].ID }, mesh.RefusedName, "id"},
		} {
			for _, at := range []*nodetest.Instance{leader, follower} {
				err := newcomer(t, c, at, x.token, x.name, x.lie)
				if mesh.RefusalOf(err) != x.reason || !strings.Contains(err.Error(), x.says) {
					t.Errorf("%s, at %s: %v", name, at.Name, err)
				}
			}
		}
		for _, m := range leader.Plan().Members {
			if m.Name != "fine" && m.Name[0] != 'n' {
				t.Errorf("a refused newcomer is in the plan: %+v", m)
			}
		}
	})
}

// A newcomer that crashed after it was admitted, and before it could note it,
// asks again and is let in again, under its own name.
func TestJoinAgainAfterACrash(t *testing.T) {
	joinAgainAfterACrash(t, "n4", "n4")
}

// So does one whose name was taken, and that asked under another like it.
func TestJoinAgainUnderANumberedName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	joinAgainAfterACrash(t, "", host+"-7")
}

func joinAgainAfterACrash(t *testing.T, chosen, asked string) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		i := c.Add()
		i.Options.Name = chosen
		req, err := identity.NewRequest(filepath.Join(i.Options.DataDir, "identity"), asked)
		if err != nil {
			t.Fatal(err)
		}
		token := c.Nodes[0].Token()
		parsed, err := identity.ParseToken(token)
		if err != nil {
			t.Fatal(err)
		}
		socket := c.Network.Listen("10.9.9.9", 7946)
		_, err = mesh.Join(t.Context(), socket, []string{c.Nodes[0].Addr()}, parsed, mesh.JoinRequest{
			ID: req.ID(), Name: asked, CSR: req.CSR(), Clock: time.Now(),
		})
		_ = socket.Close()
		if err != nil {
			t.Fatal(err)
		}
		i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, token
		i.Start()
		i.WaitReady()
		if got := len(i.Plan().Members); got != 4 {
			t.Errorf("%d members", got)
		}
		if got := i.Status().Node; got != asked {
			t.Errorf("it is in the mesh as %s, and was let in as %s", got, asked)
		}
	})
}

// A newcomer that dies the moment it has its identity, before gossip has told it
// or the others anything, finds the mesh again with nothing but its directory.
func TestDeathRightAfterItWasLetIn(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		i := c.Add()
		i.Options.Join, i.Options.Token = []string{c.Nodes[0].Addr()}, c.Nodes[0].Token()
		stores, death := i.Options.Stores, errors.New("the machine died")
		i.Options.Stores = func() (consensus.Stores, error) { return consensus.Stores{}, death }
		i.Start()
		if err := i.Exited(time.Minute); !errors.Is(err, death) {
			t.Fatalf("ended with %v", err)
		}
		i.Options.Join, i.Options.Token, i.Options.Stores = nil, "", stores
		i.Move()
		i.Restart()
		i.WaitReady()
		c.WaitEqual(time.Minute)
	})
}

// A node that has lost what it knew of the others, at an address they do not know,
// is helped by --join alone.
func TestJoinHelpsAMemberThatIsLost(t *testing.T) {
	threeVoters(t, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Others(c.Leader())[0]
		n.Kill()
		if err := os.Remove(filepath.Join(n.Options.DataDir, "peers.json")); err != nil {
			t.Fatal(err)
		}
		n.Move()
		n.Options.Join = []string{c.Leader().Addr()}
		n.Restart()
		n.WaitReady()
		c.WaitEqual(time.Minute)
	})
}
