package desk

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Version is that of the messages.
const Version = 1

// The types of questions.
const (
	Hello  = "hello"
	Next   = "next"
	Room   = "room"
	Sum    = "sum"
	Keep   = "keep"
	Report = "report"
	Stop   = "stop"
	Draw   = "draw"
	Own    = "own"
	Know   = "know"
)

// questions lists them.
var questions = []string{Hello, Next, Room, Sum, Keep, Report, Stop, Draw, Own, Know}

// The numbers that are summed.
const (
	F32 = "f32"
	F64 = "f64"
)

// MostWeight bounds the weight of one node in a sum.
const MostWeight = 1 << 53

// MostBytes bounds what a program may have summed or kept at once.
const MostBytes = 1 << 30

// MostDrawn bounds the vertices that a program may have a batch drawn for, and MostHops the
// hops.
const (
	MostDrawn = 1 << 20
	MostHops  = 32
)

// The vertices that a node may be asked for.
const (
	Train = "train"
	Val   = "val"
	Test  = "test"
	All   = "all"
)

// parts lists them.
var parts = []string{Train, Val, Test, All}

// A Question is a program's.
type Question struct {
	Type    string  `json:"type"`
	Version int     `json:"version"` // of hello
	Bytes   uint64  `json:"bytes"`   // of room
	DType   string  `json:"dtype"`   // of sum
	Region  *Region `json:"region"`  // of sum, keep and draw
	Weight  float64 `json:"weight"`  // of sum
	Fanout  []int   `json:"fanout"`  // of draw
	Number  uint64  `json:"number"`  // of draw
	Part    string  `json:"part"`    // of own
	Form            // of hello
	Scores
}

// A Form is what batches are to be like, for a program that knows more than the first ones did.
type Form struct {
	FreshFirst bool `json:"fresh_first"` // see Batch
	Following  bool `json:"following"`   // see Batch
	Columns    bool `json:"columns"`     // see Ready.Targets
	Edges      bool `json:"edges"`       // what they have beside their ends: see Batch
}

// Scores are what a program reports of an epoch. Each may be nil.
type Scores struct {
	Loss     *float64 `json:"loss,omitempty"`
	TrainAcc *float64 `json:"train_acc,omitempty"`
	ValAcc   *float64 `json:"val_acc,omitempty"`
	TestAcc  *float64 `json:"test_acc,omitempty"`
	ValLoss  *float64 `json:"val_loss,omitempty"`
}

// A Region is a part of a memory.
type Region struct {
	Memory uint64 `json:"memory"`
	Offset uint64 `json:"offset"`
	Bytes  uint64 `json:"bytes"`
}

// Align is what offsets of regions are multiples of.
const Align = 64

// ParseQuestion reads a question, and returns an error that a program's author understands
// if it can't be one. What depends on the run is not checked.
func ParseQuestion(text []byte) (q Question, err error) {
	if err := json.Unmarshal(text, &q); err != nil {
		return q, fmt.Errorf("a question must be one JSON object with a type: %w", err)
	}
	switch {
	case !slices.Contains(questions, q.Type):
		return q, fmt.Errorf("there is no question of type %.40q: ask one of %s", q.Type, strings.Join(questions, ", "))
	case q.Type == Hello && q.Version != Version:
		return q, fmt.Errorf("the program speaks version %d, and this node version %d: take the package of the same release as the node", q.Version, Version)
	case q.Type == Room && q.Bytes > MostBytes:
		return q, fmt.Errorf("room for %d bytes was asked for, and %d is the most: sum or keep less at once", q.Bytes, uint64(MostBytes))
	case q.Type == Sum && q.DType != F32 && q.DType != F64:
		return q, fmt.Errorf("numbers of dtype %.40q can't be summed: give f32 or f64", q.DType)
	case q.Type == Sum && !(math.Abs(q.Weight) <= MostWeight):
		return q, fmt.Errorf("a sum has the weight %g: give a number of at most %g", q.Weight, float64(MostWeight))
	case q.Type == Keep && q.Region == nil:
		return q, fmt.Errorf("the question keep names no region: give that of the state")
	case q.Type == Own && !slices.Contains(parts, q.Part):
		return q, fmt.Errorf("there are no vertices %.40q: ask for one of %s", q.Part, strings.Join(parts, ", "))
	case q.Type == Draw:
		return q, q.checkDraw()
	}
	return q, q.Check()
}

// checkDraw returns an error unless a batch can be drawn as is asked, as far as that does not
// depend on the graph.
func (q *Question) checkDraw() error {
	switch {
	case q.Region == nil:
		return fmt.Errorf("the question draw names no region: give that of the vertices")
	case q.Region.Bytes == 0 || q.Region.Bytes%8 != 0 || q.Region.Bytes > 8*MostDrawn:
		return fmt.Errorf("a batch is to be drawn for vertices of %d bytes: give 1 to %d numbers of 8 bytes", q.Region.Bytes, MostDrawn)
	case len(q.Fanout) > MostHops:
		return fmt.Errorf("a batch of %d hops is asked for, and %d is the most", len(q.Fanout), MostHops)
	case q.Number > math.MaxUint32:
		return fmt.Errorf("a batch has the number %d, and %d is the largest", q.Number, uint32(math.MaxUint32))
	}
	for _, k := range q.Fanout {
		if k < 0 || k > math.MaxInt32 {
			return fmt.Errorf("a fan-out is %d: give 0, for all neighbours, to %d", k, math.MaxInt32)
		}
	}
	return nil
}

// Check returns an error unless all scores can be such.
func (s *Scores) Check() error {
	for _, of := range []struct {
		name  string
		value *float64
	}{{"train_acc", s.TrainAcc}, {"val_acc", s.ValAcc}, {"test_acc", s.TestAcc}} {
		if of.value != nil && !(*of.value >= 0 && *of.value <= 1) {
			return fmt.Errorf("%s is %g, and an accuracy is from 0 to 1", of.name, *of.value)
		}
	}
	for _, x := range []*float64{s.Loss, s.ValLoss} {
		if x != nil && (math.IsNaN(*x) || math.IsInf(*x, 0)) {
			return fmt.Errorf("a loss is %g, and must be finite", *x)
		}
	}
	return nil
}

// An Answer is what a program gets.
type Answer struct {
	Body any       // is encoded as JSON
	Uses []*Memory // that its regions lie in
	Last bool      // nothing follows: the connection is closed
}

// The answers, but for those with a type alone.
type (
	// Ready answers hello.
	Ready struct {
		Type     string `json:"type"`
		Version  int    `json:"version"`
		Rank     int    `json:"rank"`
		Size     int    `json:"size"`
		Node     string `json:"node"`
		Epoch    int    `json:"epoch"`
		Step     int    `json:"step"`
		Steps    int    `json:"steps"`
		Epochs   int    `json:"epochs"`
		Vertices uint64 `json:"vertices"`
		Features int    `json:"features"`
		Classes  int    `json:"classes"`
		Layers   int    `json:"layers"`
		Seed     uint64 `json:"seed"`
		// Targets says that y of batches and of Known has columns of float32, as many as Classes
		// says: multilabel (0 or 1) or regression. A missing one is a NaN. Without it, y is a
		// class.
		Targets string `json:"targets,omitempty"`
		// Relations, Weighted and EdgeFeatures say what edges of batches have beside their ends, if
		// the program knows of it: relations counted from 0, weights, and so many features.
		Relations    int     `json:"relations,omitempty"`
		Weighted     bool    `json:"weighted,omitempty"`
		EdgeFeatures int     `json:"edge_features,omitempty"`
		State        *Region `json:"state"`
	}
	// Batch answers next and draw.
	Batch struct {
		Type     string `json:"type"`
		Epoch    int    `json:"epoch"`
		Step     int    `json:"step"`
		Steps    int    `json:"steps"`
		Roots    int    `json:"roots"`
		Nodes    int    `json:"nodes"`
		HopNodes []int  `json:"hop_nodes"`
		HopEdges []int  `json:"hop_edges"`
		// HopFresh counts the edges of a hop whose targets the hop before was the first to
		// reach. They are the last of the hop's, and a program that wants them alone copies
		// them.
		HopFresh []int `json:"hop_fresh"`
		// FreshFirst means that they come before all others, by hop, and after them the others
		// of each hop, the outermost first. So the former are one array, and those of the
		// outermost hop are another.
		FreshFirst bool   `json:"fresh_first,omitempty"`
		NID        Region `json:"n_id"`
		X          Region `json:"x"`
		Edges      Region `json:"edge_index"`
		Y          Region `json:"y"`
		// EdgeType, EdgeWeight and EdgeAttr have an int64, a float32 and a row of float32 for each
		// edge, in the order of Edges; nil: edges have none.
		EdgeType   *Region `json:"edge_type,omitempty"`
		EdgeWeight *Region `json:"edge_weight,omitempty"`
		EdgeAttr   *Region `json:"edge_attr,omitempty"`
		// Following is the batch of the next step, if that is prepared already. The program
		// may go on with it as soon as it has asked for it, before it reads the answer. What
		// it computes is void unless the answer is Announced.
		Following *Batch `json:"following,omitempty"`
	}
	// Announced answers next where the answer before had the batch.
	Announced struct {
		Type      string `json:"type"`
		Epoch     int    `json:"epoch"`
		Step      int    `json:"step"`
		Following *Batch `json:"following,omitempty"`
	}
	// Owned answers own: the numbers of vertices, and their names in the source. These are
	// numbers, or text with the end of each.
	Owned struct {
		Type string  `json:"type"`
		NID  Region  `json:"n_id"`
		IDs  *Region `json:"ids,omitempty"`
		Text *Region `json:"text,omitempty"`
		Ends *Region `json:"ends,omitempty"`
	}
	// Known answers know: the labels of all vertices, of 4 bytes for a class or for each column,
	// and their marks, of one.
	Known struct {
		Type  string `json:"type"`
		Y     Region `json:"y"`
		Marks Region `json:"marks"`
	}
	// Over answers next at the end of an epoch: its type is last or end.
	Over struct {
		Type  string `json:"type"`
		Epoch int    `json:"epoch"`
	}
	// Roomy answers room.
	Roomy struct {
		Type   string `json:"type"`
		Region Region `json:"region"`
	}
	// Summed answers sum.
	Summed struct {
		Type   string  `json:"type"`
		Weight float64 `json:"weight"`
		Region *Region `json:"region,omitempty"`
		Bytes  *uint64 `json:"bytes,omitempty"`
	}
	// Plain has nothing but a type, or a sentence beside it.
	Plain struct {
		Type  string `json:"type"`
		Why   string `json:"why,omitempty"`
		Error string `json:"error,omitempty"`
	}
)

// Failed answers a question that is wrong. The program's connection ends.
func Failed(err error) Answer {
	return Answer{Body: Plain{Type: "failed", Error: err.Error()}, Last: true}
}

// Again answers a question of a program whose run is over, though the job goes on.
func Again(why string) Answer { return Answer{Body: Plain{Type: "again", Why: why}} }

// Just answers by a type alone.
func Just(kind string) Answer { return Answer{Body: Plain{Type: kind}} }

// ending answers every question once the job has ended.
func ending(e Ending) Answer {
	if e.Done {
		return Just("done")
	}
	return Answer{Body: Plain{Type: "failed", Error: e.Why}, Last: true}
}
