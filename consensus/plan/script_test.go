package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the scripts print into them")

// TestScripts runs testdata/*.txt: blocks of commands, a line of dashes, what they
// print. Each command is a kind and its JSON, in which SHA stands for a digest, or
// one of:
//
//	show            the whole state
//	at N            the next command has index N
//	raw HEX-BYTES   a command as it is in the log
//	token HASH now=SECONDS
//
// The commands create-token and admit are HASH or ID, now=SECONDS and ttl=SECONDS or node=ID,
// and may end with JSON of further fields.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want))
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(want) {
				t.Errorf("%s prints:\n%s", f, got)
			}
		})
	}
}

const dashes = "----"

func runScript(t *testing.T, text string) string {
	m := &machine{t: t, state: new(State)}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		input, _, _ := strings.Cut(block+"\n", dashes+"\n")
		out.WriteString(input)
		ran := false
		var printed strings.Builder
		for line := range strings.Lines(input) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			ran = true
			printed.WriteString(m.run(line) + "\n")
		}
		if ran {
			out.WriteString(dashes + "\n" + printed.String())
		}
	}
	return out.String()
}

// machine is one node's state, and checks with each command what always holds.
type machine struct {
	t     *testing.T
	state *State
	index uint64
}

// scriptStart is where scripts count their seconds from.
var scriptStart = time.Unix(1_000_000, 0).UTC()

func (m *machine) run(line string) string {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "show":
		return m.show()
	case "at":
		var n uint64
		m.scan(rest, "%d", &n)
		m.index = n - 1
		return "next is " + rest
	case "token":
		var hash string
		var now int
		m.scan(rest, "%s now=%d", &hash, &now)
		if err := m.state.CheckToken(hash, scriptStart.Add(time.Duration(now)*time.Second)); err != nil {
			return err.Error()
		}
		return "welcome"
	case "raw":
		var data []byte
		m.scan(rest, "%x", &data)
		return m.apply(data)
	}
	c := m.parse(word, strings.ReplaceAll(rest, "SHA", hash))
	data, err := Encode(c)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.apply(data)
}

func (m *machine) scan(text, format string, into ...any) {
	m.t.Helper()
	if _, err := fmt.Sscanf(text, format, into...); err != nil {
		m.t.Fatalf("%q: %v", text, err)
	}
}

func (m *machine) parse(word, body string) Command {
	m.t.Helper()
	into := map[string]func() Command{
		"genesis": fill[Genesis](m.t, body), "add": fill[AddMember](m.t, body), "update": fill[UpdateMember](m.t, body),
		"leaving": fill[SetLeaving](m.t, body), "remove": fill[RemoveMember](m.t, body), "revoke-token": fill[RevokeToken](m.t, body),
		"rotate": fill[RotateKey](m.t, body), "retire": fill[RetireKey](m.t, body), "advance": fill[Advance](m.t, body),
		"reserve": fill[ReserveDataset](m.t, body), "define": fill[DefineDataset](m.t, body), "place": fill[PlaceShards](m.t, body),
		"hold": fill[HoldShards](m.t, body), "lose": fill[LoseShards](m.t, body), "remove-dataset": fill[RemoveDataset](m.t, body),
		"create-job": fill[CreateJob](m.t, body), "schedule": fill[ScheduleJob](m.t, body), "assign": fill[AssignJob](m.t, body), "commit": fill[CommitEpochs](m.t, body),
		"finish": fill[FinishJob](m.t, body), "stop": fill[StopJob](m.t, body), "resume": fill[ResumeJob](m.t, body),
		"remove-job": fill[RemoveJob](m.t, body),
		"computing":  fill[SetComputing](m.t, body),
		"create-token": func() Command {
			var hash, about string
			var now, ttl int
			m.scan(body, "%s now=%d ttl=%d", &hash, &now, &ttl)
			at := scriptStart.Add(time.Duration(now) * time.Second)
			t := NewToken(hash, at, time.Duration(ttl)*time.Second)
			if _, about, _ = strings.Cut(body, "{"); about != "" {
				if err := json.Unmarshal([]byte("{"+about), &t); err != nil {
					m.t.Fatalf("%s: %v", body, err)
				}
			}
			return CreateToken{Token: t, Now: at}
		},
		"admit": func() Command {
			var token, node string
			var now int
			m.scan(body, "%s now=%d node=%s", &token, &now, &node)
			c := Admit{Token: token, Now: scriptStart.Add(time.Duration(now) * time.Second), Member: Member{ID: node, Name: node, PublicKey: "k" + node}}
			if _, about, ok := strings.Cut(body, "{"); ok {
				if err := json.Unmarshal([]byte("{"+about), &c); err != nil {
					m.t.Fatalf("%s: %v", body, err)
				}
			}
			return c
		},
	}[word]
	if into == nil {
		m.t.Fatalf("no command %q", word)
	}
	return into()
}

// fill reads a command from its JSON.
func fill[C Command](t *testing.T, body string) func() Command {
	return func() Command {
		var c C
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return c
	}
}

func (m *machine) apply(data []byte) string {
	m.t.Helper()
	before, err := json.Marshal(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	m.index++
	next, applyErr := Apply(m.state, m.index, data)
	again, err := json.Marshal(m.state)
	if err != nil || !bytes.Equal(before, again) {
		m.t.Fatalf("Apply changed the state it was given: %s became %s (%v)", before, again, err)
	}
	was := m.state
	if errors.Is(applyErr, ErrUnknownCommand) {
		if next != was {
			m.t.Fatal("went on after a command that it does not know")
		}
		return "stops: " + applyErr.Error()
	}
	m.state = next
	switch {
	case next.Index != m.index:
		m.t.Fatalf("index %d after command %d", next.Index, m.index)
	case next.Generation < was.Generation:
		m.t.Fatalf("generation fell from %d to %d", was.Generation, next.Generation)
	case applyErr != nil && refusedAs(was, next).Digest() != was.Digest():
		m.t.Fatalf("refused (%v), but the state is another", applyErr)
	}
	m.roundTrip()
	if applyErr != nil {
		return fmt.Sprintf("%d refused: %v", m.index, applyErr)
	}
	if next.Digest() == was.Digest() {
		return fmt.Sprintf("%d nothing new", m.index)
	}
	return fmt.Sprintf("%d generation %d", m.index, next.Generation)
}

// roundTrip goes on with the state as a snapshot has it.
func (m *machine) roundTrip() {
	m.t.Helper()
	b, err := MarshalSnapshot(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	back, err := UnmarshalSnapshot(b)
	if err != nil {
		m.t.Fatal(err)
	}
	if back.Digest() != m.state.Digest() || back.Index != m.state.Index {
		m.t.Fatalf("the snapshot of %+v reads as %+v", m.state, back)
	}
	m.state = back
}

func (m *machine) show() string {
	s := m.state
	var b strings.Builder
	fmt.Fprintf(&b, "mesh %q, generation %d, index %d\n", s.MeshID, s.Generation, s.Index)
	if s.Needs > 0 {
		fmt.Fprintf(&b, "needs command %d\n", s.Needs)
	}
	fmt.Fprintf(&b, "key %+v\n", s.Key)
	for _, id := range slices.Sorted(maps.Keys(s.Members)) {
		p := s.Members[id]
		fmt.Fprintf(&b, "member {ID:%s Name:%s Device:%s Version:%s Memory:%d Speed:%d PublicKey:%s Joined:%d Leaving:%v}",
			p.ID, p.Name, p.Device, p.Version, p.Memory, p.Speed, p.PublicKey, p.Joined, p.Leaving)
		if p.Computes != (Numbers{}) {
			fmt.Fprintf(&b, " computes %s", p.Computes)
		}
		if p.Knows != 0 || p.Founder || p.Token != "" {
			fmt.Fprintf(&b, " knows %d, founder=%v, token %q", p.Knows, p.Founder, p.Token)
		}
		b.WriteString("\n")
	}
	for _, id := range slices.Sorted(maps.Keys(s.Gone)) {
		g := s.Gone[id]
		fmt.Fprintf(&b, "gone {ID:%s Name:%s Why:%s Index:%d} refused=%v", g.ID, g.Name, g.Why, g.Index, s.Refused(id))
		if g.Token != "" {
			fmt.Fprintf(&b, " token %q", g.Token)
		}
		b.WriteString("\n")
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tokens)) {
		t := s.Tokens[id]
		expires := "never"
		if !t.Expires.IsZero() {
			expires = fmt.Sprint(t.Expires.Sub(scriptStart))
		}
		fmt.Fprintf(&b, "token %s created %s expires %s", id, t.Created.Sub(scriptStart), expires)
		if t.Owner != "" || t.Uses > 0 || t.Used > 0 || len(t.Seen) > 0 {
			fmt.Fprintf(&b, ", of %q, used %d of %d by %q, seen by %q", t.Owner, t.Used, t.Uses, s.JoinedBy(id), t.Seen)
		}
		b.WriteString("\n")
	}
	for _, id := range slices.Sorted(maps.Keys(s.Datasets)) {
		d := s.Datasets[id]
		fmt.Fprintf(&b, "dataset %s %s %s from %s, %d replicas, %+v\n", d.ID, d.Name, d.Stage, d.Importer, d.Replicas, d.About)
		for i, sh := range d.Shards {
			fmt.Fprintf(&b, "  shard %d: %d vertices, on %v", i, sh.Vertices, d.HoldersOf(i))
			if !d.Settled(i) {
				fmt.Fprintf(&b, ", wanted on %v", d.WantedOf(i))
			}
			b.WriteString("\n")
		}
	}
	for _, j := range s.JobsInOrder() {
		owners := ""
		if len(j.Owners) > 0 {
			owners = fmt.Sprintf(" that own %v", j.Owners)
		}
		if len(j.Holders) > 0 {
			owners += fmt.Sprintf(" and hold %v, of weights %v", j.Holders, j.Weights)
		}
		fmt.Fprintf(&b, "job %s %s stopping=%v %q on %v%s, generation %d, dataset %s, %s (%s), seed %d, best %d of %d, last %d of %d, recipe %s\n",
			j.ID, j.State, j.Stopping, j.Error, j.Nodes, owners, j.Generation, j.DatasetName, j.Strategy, j.Why, j.Seed, j.Best, len(j.History), j.Last(), j.Epochs, j.Recipe)
		if j.Computing > 1 {
			fmt.Fprintf(&b, "  by computing number %d\n", j.Computing)
		}
		if len(j.Bests) > 0 {
			fmt.Fprintf(&b, "  model %d is the best of a sweep, whose bests are %v\n", j.BestModel, j.Bests)
		}
		if len(j.Diverged) > 0 {
			fmt.Fprintf(&b, "  of its models, how they diverged: %q\n", j.Diverged)
		}
		for _, e := range j.Schedule {
			fmt.Fprintf(&b, "  from epoch %d on %s %q at %v, of generation %d for %t (%s)\n", e.From, e.Strategy, e.Part, e.Rate, e.Generation, e.Work == j.Work(), e.Why)
		}
		for _, e := range j.History {
			if len(j.Bests) > 0 {
				fmt.Fprintf(&b, "  model %d:", e.Model)
			}
			fmt.Fprintf(&b, "  epoch %d, loss %v, evaluated %v, generation %d\n", e.Epoch, e.Loss, e.Eval != nil, e.Generation)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
