package table

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// PairFormats lists the file name extensions that NewPairs supports.
var PairFormats = []string{".csv", ".json", ".npy", ".parquet", ".tsv"}

// Pairs describes a table of pairs of vertices and their scores.
type Pairs struct {
	Rows  int
	Fewer bool // there may be fewer rows
	// Names reports whether ids are strings, not integers. NPY holds scores alone.
	Names bool
}

// A PairWriter writes pairs in order: those of sources and targets of the same index, each with
// its score. Close returns an error if rows are missing.
type PairWriter interface {
	Write(sources, targets [][]byte, scores []float32) error
	Close() error
}

// NewPairs returns a writer to w in one of PairFormats.
func NewPairs(w io.Writer, format string, p Pairs) (PairWriter, error) {
	switch format {
	case ".csv":
		return newPairLines(w, ',')
	case ".tsv":
		return newPairLines(w, '\t')
	case ".json":
		return newPairJSON(w, p)
	case ".npy":
		if p.Fewer {
			return nil, errors.New("an .npy file holds scores without ids, which says nothing here: use another format")
		}
		n, err := newNPY(w, Header{Rows: p.Rows, Columns: []string{"score"}})
		return pairNPY{n}, err
	case ".parquet":
		return newPairParquet(w, p)
	}
	return nil, fmt.Errorf("there is no format %q", format)
}

// PairMemory returns how much memory a writer of pairs takes at most, if it is given no more
// than 1024 rows at a time.
func PairMemory(format string, p Pairs) uint64 {
	const others = 2 << 20
	if format != ".parquet" {
		return others
	}
	// As parquetMemory counts: a group, and what the end of the file says of all.
	const described = 1100
	rows := uint64(p.Rows)
	groups := (rows + groupRows - 1) / groupRows
	rows = min(rows, groupRows)
	id := uint64(8)
	if p.Names {
		id = 3 * 64 // of some length, in buffers that grow by doubling
	}
	return others + rows*(2*id+4)*9/8 + groups*3*described
}

// pairNPY writes the scores alone.
type pairNPY struct{ *npy }

// Write implements PairWriter.
func (p pairNPY) Write(sources, _ [][]byte, scores []float32) error {
	return p.npy.Write(sources, scores)
}

// pairLines writes a line for each pair, below one that names the columns.
type pairLines struct {
	out       *bufio.Writer
	delimiter byte
	number    []byte
}

func newPairLines(w io.Writer, delimiter byte) (*pairLines, error) {
	p := &pairLines{out: bufio.NewWriterSize(w, 1<<16), delimiter: delimiter}
	_, err := fmt.Fprintf(p.out, "source%ctarget%[1]cscore\n", delimiter)
	return p, err
}

// Write implements PairWriter.
func (p *pairLines) Write(sources, targets [][]byte, scores []float32) error {
	for i, score := range scores {
		p.field(sources[i])
		_ = p.out.WriteByte(p.delimiter) // errors of the buffer stay until it is flushed
		p.field(targets[i])
		_ = p.out.WriteByte(p.delimiter)
		p.number = strconv.AppendFloat(p.number[:0], float64(score), 'g', -1, 32)
		_, _ = p.out.Write(p.number)
		if err := p.out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// field writes an id, in quotes if a reader would take it apart or change it.
func (p *pairLines) field(id []byte) {
	blank := len(id) > 0 && (id[0] == ' ' || id[0] == '\t' || id[len(id)-1] == ' ' || id[len(id)-1] == '\t')
	if !blank && bytes.IndexByte(id, p.delimiter) < 0 && !bytes.ContainsAny(id, "\"\r\n") {
		_, _ = p.out.Write(id)
		return
	}
	_ = p.out.WriteByte('"')
	for _, c := range id {
		if c == '"' {
			_ = p.out.WriteByte(c)
		}
		_ = p.out.WriteByte(c)
	}
	_ = p.out.WriteByte('"')
}

// Close implements PairWriter.
func (p *pairLines) Close() error { return p.out.Flush() }

// pairJSON writes one document: {"pairs":[{"source","target","score"}]}. A score that is no
// number is null.
type pairJSON struct {
	out   *bufio.Writer
	names bool
	begun bool
	text  bytes.Buffer
	words *json.Encoder // to text
	digit []byte
}

func newPairJSON(w io.Writer, p Pairs) (*pairJSON, error) {
	j := &pairJSON{out: bufio.NewWriterSize(w, 1<<16), names: p.Names}
	j.words = json.NewEncoder(&j.text)
	j.words.SetEscapeHTML(false)
	_, err := j.out.WriteString(`{"pairs":[`)
	return j, err
}

// Write implements PairWriter.
func (j *pairJSON) Write(sources, targets [][]byte, scores []float32) error {
	for i, score := range scores {
		source, err := j.id(sources[i])
		if err != nil {
			return err
		}
		between := "\n"
		if j.begun {
			between = ",\n"
		}
		j.begun = true
		_, _ = fmt.Fprintf(j.out, `%s{"source":%s,"target":`, between, source) // errors of the buffer stay
		target, err := j.id(targets[i])
		if err != nil {
			return err
		}
		number := append(j.digit[:0], "null"...)
		if x := float64(score); !math.IsNaN(x) && !math.IsInf(x, 0) {
			number = strconv.AppendFloat(j.digit[:0], x, 'g', -1, 32)
		}
		j.digit = number
		if _, err := fmt.Fprintf(j.out, `%s,"score":%s}`, target, number); err != nil {
			return err
		}
	}
	return nil
}

// id returns an id as JSON, which is valid until the next one.
func (j *pairJSON) id(id []byte) ([]byte, error) {
	if !j.names {
		return id, nil
	}
	j.text.Reset()
	err := j.words.Encode(string(id))
	return bytes.TrimSuffix(j.text.Bytes(), []byte("\n")), err
}

// Close implements PairWriter.
func (j *pairJSON) Close() error {
	if j.begun {
		_ = j.out.WriteByte('\n')
	}
	_, _ = j.out.WriteString("]}\n")
	return j.out.Flush()
}

// pairParquet writes the columns source, target and score.
type pairParquet struct {
	tally
	fewer bool // rows may come than were announced
	ids   columnar
	out   *file.Writer
	group file.BufferedRowGroupWriter // nil between groups
	rows  int                         // of the group
}

func newPairParquet(w io.Writer, p Pairs) (*pairParquet, error) {
	var fields schema.FieldList
	for _, name := range []string{"source", "target"} {
		id := schema.Node(schema.NewInt64Node(name, parquet.Repetitions.Required, -1))
		if p.Names {
			var err error
			if id, err = schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1); err != nil {
				return nil, err
			}
		}
		fields = append(fields, id)
	}
	root, err := schema.NewGroupNode("rows", parquet.Repetitions.Required, append(fields, schema.NewFloat32Node("score", parquet.Repetitions.Required, -1)), -1)
	if err != nil {
		return nil, err
	}
	// The library would close w, which belongs to the caller.
	props := parquet.NewWriterProperties(parquet.WithDictionaryDefault(false), parquet.WithCreatedBy("hopmesh"))
	out, err := file.NewParquetWriterWithError(struct{ io.Writer }{w}, root, file.WithWriterProps(props))
	if err != nil {
		return nil, err
	}
	return &pairParquet{tally: tally{columns: 1, left: p.Rows}, fewer: p.Fewer, ids: columnar{names: p.Names}, out: out}, nil
}

// Write implements PairWriter.
func (c *pairParquet) Write(sources, targets [][]byte, scores []float32) error {
	if err := c.take(sources, scores); err != nil {
		return err
	}
	if len(scores) == 0 {
		return nil
	}
	var err error
	if c.group == nil {
		if c.group, err = c.out.AppendBufferedRowGroupChecked(); err != nil {
			return err
		}
	}
	c.ids.group = c.group
	if err := errors.Join(c.ids.writeIDs(0, sources), c.ids.writeIDs(1, targets)); err != nil {
		return err
	}
	w, err := c.group.Column(2)
	if err == nil {
		_, err = w.(*file.Float32ColumnChunkWriter).WriteBatch(scores, nil, nil)
	}
	if err != nil {
		return err
	}
	if c.rows += len(scores); c.rows >= groupRows {
		return c.flush()
	}
	return nil
}

// flush ends the row group.
func (c *pairParquet) flush() (err error) {
	if c.group != nil {
		err = c.group.Close()
	}
	c.group, c.rows = nil, 0
	return err
}

// Close implements PairWriter.
func (c *pairParquet) Close() error {
	if err := c.end(); err != nil && !c.fewer {
		return err
	}
	return errors.Join(c.flush(), c.out.Close())
}
