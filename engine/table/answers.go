package table

import (
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Answers says that a table's numbers are scores of classes. A Parquet file then has three
// more columns: class, the number of the class with the largest score (the first of
// equals), its class_name and its probability.
type Answers struct {
	Names []string // of the classes, one for each column
	// Logistic makes the probability that of the logistic function of the score alone;
	// otherwise it is that of softmax over all scores.
	Logistic bool
}

// answerNodes describes the columns of answers.
func answerNodes() (schema.FieldList, error) {
	name, err := schema.NewPrimitiveNodeLogical("class_name", parquet.Repetitions.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1)
	if err != nil {
		return nil, err
	}
	return schema.FieldList{
		schema.NewInt32Node("class", parquet.Repetitions.Required, -1), name,
		schema.NewFloat32Node("probability", parquet.Repetitions.Required, -1),
	}, nil
}

// longest returns the length of the longest name.
func (a *Answers) longest() int {
	n := 0
	for _, name := range a.Names {
		n = max(n, len(name))
	}
	return n
}

// best returns the class with the largest score, and its probability.
func (a *Answers) best(scores []float32) (class int, probability float32) {
	for i, score := range scores {
		if score > scores[class] {
			class = i
		}
	}
	largest := float64(scores[class])
	if a.Logistic {
		return class, float32(1 / (1 + math.Exp(-largest)))
	}
	sum := 0.0
	for _, score := range scores {
		sum += math.Exp(float64(score) - largest)
	}
	return class, float32(1 / sum)
}

// writeAnswers writes the columns of answers for some rows of scores.
func (c *columnar) writeAnswers(rows []float32) error {
	c.classes, c.texts, c.column = c.classes[:0], c.texts[:0], c.column[:0]
	for ; len(rows) > 0; rows = rows[c.columns:] {
		class, probability := c.answers.best(rows[:c.columns])
		c.classes, c.texts, c.column = append(c.classes, int32(class)), append(c.texts, c.named[class]), append(c.column, probability)
	}
	w, err := c.group.Column(1 + c.columns)
	if err == nil {
		_, err = w.(*file.Int32ColumnChunkWriter).WriteBatch(c.classes, nil, nil)
	}
	if err == nil {
		w, err = c.group.Column(2 + c.columns)
	}
	if err == nil {
		_, err = w.(*file.ByteArrayColumnChunkWriter).WriteBatch(c.texts, nil, nil)
	}
	if err == nil {
		w, err = c.group.Column(3 + c.columns)
	}
	if err == nil {
		_, err = w.(*file.Float32ColumnChunkWriter).WriteBatch(c.column, nil, nil)
	}
	return err
}
