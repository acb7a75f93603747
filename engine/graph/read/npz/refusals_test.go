package npz

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestNPZRefusals(t *testing.T) {
	nan, inf := float32(math.NaN()), math.Inf(-1)
	for name, c := range map[string]struct {
		folder readtest.Arrays
		key    string
		by     *readtest.NPY
		want   string
	}{
		"no edges":              {readtest.Lists(), "edge_index", nil, "g.npz holds neither edge_index nor adj_indptr and adj_indices, but test_mask, train_mask, val_mask, x, y: save the edges as edge_index, an array of two rows with each edge's source and target"},
		"both layouts":          {readtest.Matrices(), "edge_index", new(readtest.Of("(2, 0)", []int64{})), "g.npz holds edges both as edge_index and as adj_indptr and adj_indices: save it with one of them"},
		"edges in columns":      {readtest.Lists(), "edge_index", new(readtest.Of("(4, 2)", []int64{0, 1, 2, 4, 1, 2, 0, 4})), "g.npz: edge_index: it has the shape [4, 2]: save two rows, each edge's source and each edge's target, such as its transpose edge_index.T"},
		"edges of floats":       {readtest.Lists(), "edge_index", new(readtest.Of("(2, 1)", []float32{0, 1})), "g.npz: edge_index: it has the type float32: save it as integers, with astype('int64')"},
		"a far vertex":          {readtest.Lists(), "edge_index", new(readtest.Of("(2, 2)", []int64{0, 1, 1, 5})), "g.npz: edge_index: row 1, column 1: there is not a vertex 5, as there are 5 vertices, numbered from 0: check num_nodes and the edges"},
		"a negative vertex":     {readtest.Lists(), "edge_index", new(readtest.Of("(2, 2)", []int32{0, -1, 1, 2})), "g.npz: edge_index: row 0, column 1: there is not a vertex -1, as"},
		"a huge vertex":         {readtest.Lists(), "edge_index", new(readtest.Of("(2, 1)", []uint64{1 << 63, 1})), "g.npz: edge_index: row 0, column 0: there is not a vertex 9223372036854775807"},
		"a far vertex in pairs": {readtest.Lists(), "edge_index", new(readtest.Of("(2, 2)", []int16{0, 1, 1, 7}).InFortranOrder()), "g.npz: edge_index: row 1, column 1: there is not a vertex 7, as"},
		"NaN":                   {readtest.Lists(), "x", new(readtest.Of("(5, 2)", []float32{1, 2, 3, 4, 5, 6, 7, nan, 9, 10})), "g.npz: x: row 3, column 1 is NaN: fill in what is missing, for instance with numpy.nan_to_num"},
		"infinity":              {readtest.Lists(), "x", new(readtest.Of("(5, 2)", []float64{1, 2, inf, 4, 5, 6, 7, 8, 9, 10})), "g.npz: x: row 1, column 0 is infinite as a float32: scale the feature, or clip it with numpy.clip"},
		"too large":             {readtest.Lists(), "x", new(readtest.Of("(5, 2)", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1e39})), "g.npz: x: row 4, column 1 is infinite as a float32"},
		"features too few":      {readtest.Lists().With("num_nodes", new(readtest.Of("()", []int64{6}))), "y", nil, "g.npz: x: it has 5 rows and there are 6 vertices: give each vertex a row"},
		"features flat":         {readtest.Lists(), "x", new(readtest.Of("(5,)", []float32{1, 2, 3, 4, 5})), "g.npz: x: it has the shape [5]: give features a row for each vertex and a column for each feature"},
		"features in columns":   {readtest.Lists(), "x", new(readtest.Of("(5, 2)", []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).InFortranOrder()), "g.npz: x: its columns, not its rows, lie one after another (Fortran order): save numpy.ascontiguousarray of it"},
		"features too wide":     {readtest.Lists(), "x", new(readtest.Of("(1, 1048577)", make([]int8, 1<<20+1))), "g.npz: x: there are 1048577 columns and at most 1048576 can be taken: save the features as a sparse matrix, or make them fewer"},
		"labels too many":       {readtest.Lists(), "y", new(readtest.Of("(6,)", []int64{0, 1, 0, 1, 0, 1})), "g.npz: y: it has the shape [6] and there are 5 vertices: give each vertex a label, -1 if it has none"},
		"labels too few":        {readtest.Lists(), "y", new(readtest.Of("(4,)", []int64{0, 1, 0, 1})), "g.npz: y: it has the shape [4] and there are 5 vertices"},
		"targets too few":       {readtest.Lists(), "y", new(readtest.Of("(4, 2)", []int8{0, 1, 0, 1, 0, 1, 0, 1})), "g.npz: y: it has the shape [4, 2] and there are 5 vertices: give each vertex a row of targets, NaN where one is missing"},
		"targets in columns":    {readtest.Lists(), "y", new(readtest.Of("(5, 2)", []int8{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}).InFortranOrder()), "g.npz: y: its columns, not its rows, lie one after another (Fortran order): save numpy.ascontiguousarray of it"},
		"an infinite target":    {readtest.Lists(), "y", new(readtest.Of("(5, 2)", []float32{0, 1, 2, float32(inf), 0, 1, 0, 1, 0, 1})), "g.npz: y: row 1, column 1: the target -Inf is infinite as a float32: scale it, or make it NaN, which is missing"},
		"no target at all":      {readtest.Lists(), "y", new(readtest.Of("(5, 2)", []int8{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1})), "g.npz: y: no vertex has a target: all are missing"},
		"a label below":         {readtest.Lists(), "y", new(readtest.Of("(5,)", []int64{0, 1, -2, 1, 0})), "g.npz: y: vertex 2: the label -2 is not between 0 and 1048575: number the classes"},
		"splits overlap":        {readtest.Lists(), "test_mask", new(readtest.Of("(5,)", []bool{false, false, true, false, false})), "g.npz: test_mask: vertex 2 is in train and in test: take it out of one"},
		"many splits overlap":   {readtest.Matrices(), "test_idx", new(readtest.Of("(2, 1)", []int64{2, 1})), "g.npz: test_idx: vertex 1 is in train and in test of split 1: take it out of one"},
		"splits differ":         {readtest.Matrices(), "val_idx", new(readtest.Of("(3, 1)", []int64{2, 1, 0})), "g.npz: val_idx: it has 3 splits and another part has 2: give every part as many"},
		"no splits":             {readtest.Matrices(), "train_idx", new(readtest.Of("(0, 1)", []int64{})), "g.npz: train_idx: there are 0 splits, and 1 to 1024 can be taken: leave some out"},
		"a split too far":       {readtest.Matrices(), "test_idx", new(readtest.Of("(2, 1)", []int64{2, 3})), "g.npz: test_idx: split 1, entry 0: there is not a vertex 3, as there are 3, numbered from 0: leave it out"},
		"a mask too short":      {readtest.Lists(), "val_mask", new(readtest.Of("(4,)", []bool{false, false, false, false})), "g.npz: val_mask: it has the shape [4] and there are 5 vertices: give a mask true or false for each vertex"},
		"a mask of twos":        {readtest.Lists(), "val_mask", new(readtest.Of("(5,)", []int8{0, 2, 0, 0, 0})), "g.npz: val_mask: it holds numbers other than 0 and 1: save the mask as booleans"},
		"ids as a mask":         {readtest.Matrices(), "train_idx", new(readtest.Of("(3,)", []bool{true, false, false})), "g.npz: train_idx: it is [3] of type bool: save it as a row of vertex ids for each split, as integers"},
		"ids and a mask":        {readtest.Lists(), "train_idx", new(readtest.Of("(1,)", []int64{0})), "g.npz holds both train_idx and train_mask: save one of them"},
		"weights too few":       {readtest.Lists(), "edge_weight", new(readtest.Of("(3,)", []float32{1, 2, 3})), "g.npz: edge_weight: it has the shape [3] and there are 4 edges: give each edge one weight"},
		"a weight is NaN":       {readtest.Lists(), "edge_weight", new(readtest.Of("(4,)", []float32{1, 2, nan, 4})), "g.npz: edge_weight: entry 2 is NaN as a float32: give each edge a finite weight"},
		"too many vertices":     {readtest.Arrays{"edge_index": readtest.Lists()["edge_index"]}, "num_nodes", new(readtest.Of("()", []int64{1 << 30})), "g.npz: num_nodes: it says that there are 1073741824 vertices, which a file of "},
		"no vertices at all":    {readtest.Lists(), "x", new(readtest.Of("(0, 2)", []float32{})), "g.npz: x: there are no vertices: check what was saved"},
		"no vertices":           {readtest.Arrays{"edge_index": readtest.Of("(2, 0)", []int64{})}, "", nil, "g.npz: edge_index: there are no edges, and nothing says how many vertices there are: add num_nodes"},
		"num_nodes of floats":   {readtest.Lists(), "num_nodes", new(readtest.Of("()", []float32{5})), "g.npz: num_nodes: it is [] of type float32, and one integer was expected: save the number of vertices"},
		"a lone y":              {readtest.Arrays{"edge_index": readtest.Lists()["edge_index"]}, "y", new(readtest.Of("()", []int64{5})), "g.npz: y: it is a single number: give it a row for each vertex"},
		"a matrix not square":   {readtest.Matrices(), "adj_shape", new(readtest.Of("(2,)", []int64{3, 4})), "g.npz: adj_indptr: the matrix has 3 rows and 4 columns: a graph's has as many of both"},
		"a shape of three":      {readtest.Matrices(), "adj_shape", new(readtest.Of("(3,)", []int64{3, 3, 3})), "g.npz: adj_shape: it holds [3] numbers and two were expected"},
		"a huge shape":          {readtest.Matrices(), "adj_shape", new(readtest.Of("(2,)", []int64{1 << 31, 1 << 31})), "g.npz: adj_shape: a matrix of 2147483648 rows and 2147483648 columns can't be taken, only one of up to 2147483647"},
		"a negative shape":      {readtest.Matrices(), "adj_shape", new(readtest.Of("(2,)", []int64{-3, 3})), "g.npz: adj_shape: a matrix of -3 rows"},
		"no shape":              {readtest.Matrices(), "adj_shape", nil, "g.npz holds no adj_shape, but adj_data, adj_indices, adj_indptr, attr_data,"},
		"rows too few":          {readtest.Matrices(), "adj_indptr", new(readtest.Of("(3,)", []int64{0, 2, 4})), "g.npz: adj_indptr: it has 3 numbers, and a matrix of 3 rows needs 4: save the matrix again with SciPy's csr_matrix"},
		"rows go back":          {readtest.Matrices(), "adj_indptr", new(readtest.Of("(4,)", []int64{0, 3, 2, 4})), "g.npz: adj_indptr: row 1: its entries end at 2, between 3 and 4 is possible"},
		"rows begin late":       {readtest.Matrices(), "adj_indptr", new(readtest.Of("(4,)", []int64{1, 2, 2, 4})), "g.npz: adj_indptr: it does not begin with 0"},
		"rows end early":        {readtest.Matrices(), "adj_indptr", new(readtest.Of("(4,)", []int64{0, 2, 2, 3})), "g.npz: adj_indptr: it ends with 3, and there are 4 entries"},
		"rows end late":         {readtest.Matrices(), "attr_indptr", new(readtest.Of("(4,)", []int64{0, 2, 2, 5})), "g.npz: attr_indptr: row 2: its entries end at 5, between 2 and 4 is possible"},
		"a far column":          {readtest.Matrices(), "adj_indices", new(readtest.Of("(4,)", []int32{1, 2, 0, 3})), "g.npz: adj_indices: row 2: there is no column 3, as there are 3: save the matrix again"},
		"data too few":          {readtest.Matrices(), "adj_data", new(readtest.Of("(3,)", []float32{1, 1, 1})), "g.npz: adj_data: it has 3 numbers and adj_indices has 4"},
		"columns of floats":     {readtest.Matrices(), "adj_indices", new(readtest.Of("(4,)", []float32{1, 2, 0, 0})), "g.npz: adj_indices: it has the shape [4] and the type float32: save integers in one dimension"},
		"attributes too few":    {readtest.Matrices(), "attr_data", new(readtest.Of("(3,)", []float32{1, 1, 1})), "g.npz: attr_data: it has 3 numbers and attr_indices has 4"},
		"no attributes":         {readtest.Matrices(), "attr_data", nil, "g.npz holds no attr_data, but adj_data"},
		"attributes short":      {readtest.Matrices().With("attr_shape", new(readtest.Of("(2,)", []int64{2, 4}))), "attr_indptr", new(readtest.Of("(3,)", []int32{0, 2, 4})), "g.npz: attr_indptr: the matrix has 2 rows and there are 3 vertices: give each vertex a row"},
		"attributes too wide":   {readtest.Matrices(), "attr_shape", new(readtest.Of("(2,)", []int64{3, 1 << 25})), "g.npz: attr_data: there are 33554432 columns and at most 16777216 can be taken: make the features fewer"},
		"attributes twice":      {readtest.Matrices(), "attr_indices", new(readtest.Of("(4,)", []int32{3, 3, 1, 2})), "g.npz: attr_indices: row 0 has column 3 twice: call sum_duplicates() on the matrix before it is saved"},
		"attributes too many":   {readtest.Matrices().With("attr_shape", new(readtest.Of("(2,)", []int64{3, 1}))), "attr_indices", new(readtest.Of("(4,)", []int32{0, 0, 0, 0})), "g.npz: attr_indices: row 0 has more entries than there are columns"},
		"attributes are NaN":    {readtest.Matrices(), "attr_data", new(readtest.Of("(4,)", []float32{1, 1, 1, nan})), "g.npz: attr_data: row 2, column 2 is NaN"},
		"both attributes":       {readtest.Matrices(), "attr_matrix", new(readtest.Of("(3, 1)", []float32{1, 1, 1})), "g.npz holds features both as attr_matrix and as attr_indptr and attr_indices: save it with one of them"},
		"objects":               {readtest.Lists(), "y", new(readtest.Of("(1,)", []int64{0}).As("|O")), `g.npz: y: it holds Python objects, which only Python can take apart: if you trust the file, convert it with python3 -c "import numpy as np; z = dict(np.load('g.npz', allow_pickle=True)); z['y'] = np.array(z['y'].tolist()); np.savez('plain.npz', **z)"`},
		"text":                  {readtest.Lists(), "x", new(readtest.Of("(1,)", []int64{0}).As("<U2")), `g.npz: x: it holds "<U2", and only integers, booleans and floats of up to 64 bits can be taken`},
		"complex":               {readtest.Lists(), "x", new(readtest.Of("(1,)", []int64{0}).As("<c8")), `g.npz: x: it holds "<c8", and only`},
		"a lie":                 {readtest.Lists(), "x", new(readtest.Of("(1000000000, 100)", []float32{1})), "g.npz: x: its header claims [1000000000, 100] numbers of type float32, which is 400000000128 bytes, and it has 132: copy the file or save it again"},
		"a huge lie":            {readtest.Lists(), "x", new(readtest.Of("(4000000000, 4000000000)", []float32{1})), "g.npz: x: its header claims more numbers than there can be: save it again with numpy.savez"},
		"a version":             {readtest.Lists(), "x", &readtest.NPY{Descr: "<f4", Shape: "(0,)", Version: 4}, "g.npz: x: its format has version 4, and 1, 2 and 3 are known: save it again with numpy.savez"},
		"a broken header":       {readtest.Lists(), "x", &readtest.NPY{Descr: "<f4", Shape: "(5, -2)"}, "g.npz: x: its header is damaged: save it again with numpy.savez"},
	} {
		t.Run(name, func(t *testing.T) {
			readtest.Refused(t, Open, c.folder.With(c.key, c.by).File(t, zip.Deflate), source.Options{}, c.want)
			readtest.Refused(t, Open, c.folder.With(c.key, c.by).File(t, zip.Store), source.Options{}, c.want)
		})
	}
	readtest.Refused(t, Open, readtest.Lists().File(t, zip.Store), source.Options{Memory: 100}, "g.npz: y: more memory is needed than is allowed: raise {dataset.memory}")
}

// emptied is an archive in which an array has no bytes at all.
func emptied(t *testing.T, key string, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, a := range readtest.Lists() {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err == nil && name != key {
			_, err = w.Write(a.Bytes())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDamagedArchives(t *testing.T) {
	whole := readtest.Lists().Bytes(t, zip.Deflate)
	readtest.Refused(t, Open, readtest.Put(t, "g.npz", whole[:len(whole)/2]), source.Options{}, "g.npz is not a complete zip archive (zip: not a valid zip file), as NumPy's savez writes it: copy the file again")
	readtest.Refused(t, Open, readtest.Put(t, "g.npz", nil), source.Options{}, "g.npz is empty: save the graph again")
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		readtest.Refused(t, Open, readtest.Put(t, "g.npz", emptied(t, "y", method)), source.Options{}, "g.npz: y: it is empty, without even the header that says what it holds: save the array again")
	}
	// The directory of an archive names a place behind the archive's end.
	far := readtest.Lists().Bytes(t, zip.Store)
	entry := bytes.LastIndex(far, []byte("y.npy")) - 46
	binary.LittleEndian.PutUint32(far[entry+42:], uint32(len(far)))
	readtest.Refused(t, Open, readtest.Put(t, "g.npz", far), source.Options{}, "g.npz: y: the archive ends before the place where it says that this array begins: copy the file again")
	readtest.Refused(t, Open, readtest.Put(t, "g.npz", readtest.Of("(2, 0)", []int64{}).Bytes()), source.Options{}, "g.npz is a single array of NumPy (.npy), not an archive of them: save all arrays of the graph with numpy.savez")
	readtest.Refused(t, Open, readtest.Put(t, "g.npz", readtest.Arrays{}.Bytes(t, zip.Store)), source.Options{}, "g.npz holds neither edge_index nor adj_indptr and adj_indices, but no array")
	readtest.Refused(t, Open, t.TempDir(), source.Options{Format: "npz"}, " is a folder: give the path of an .npz file in it")

	// A bit of each array's numbers, where it lies as it is.
	for _, z := range []readtest.Arrays{readtest.Lists(), readtest.Matrices()} {
		stored := z.Bytes(t, zip.Store)
		for key, a := range z {
			at := bytes.Index(stored, a.Bytes()) + len(a.Bytes()) - len(a.Data)
			for _, bit := range []int{0, len(a.Data) - 1} {
				damaged := bytes.Clone(stored)
				damaged[at+bit] ^= 1
				if key == "adj_data" || key == "x" || strings.HasPrefix(key, "attr_data") {
					readtest.Refused(t, Open, readtest.Put(t, "g.npz", damaged), source.Options{}, "g.npz: "+key+": its checksum is wrong, so that it was damaged: copy the file again")
				} else {
					readtest.Refused(t, Open, readtest.Put(t, "g.npz", damaged), source.Options{}, "g.npz: ")
				}
			}
		}
	}
	// Damage in the second half of edge_index alone, and in the first.
	bad := readtest.Of("(2, 4)", []int64{0, 1, 2, 4, 1, 2, 0, 3})
	for _, by := range []readtest.NPY{bad, readtest.Of("(2, 4)", []int64{0, 1, 2, 3, 1, 2, 0, 4})} {
		stored := readtest.Lists().Bytes(t, zip.Store)
		stored = bytes.Replace(stored, readtest.Lists()["edge_index"].Data, by.Data, 1)
		readtest.Refused(t, Open, readtest.Put(t, "g.npz", stored), source.Options{}, "g.npz: edge_index: its checksum is wrong")
	}
	// Not one byte of a packed archive may be wrong without being noticed, but for
	// names and times.
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x10
		s, err := archiveIn(t.Context(), "g.npz", bytes.NewReader(damaged), int64(len(damaged)), source.Options{})
		if err != nil {
			continue
		}
		if h, err := readtest.Hold(t.Context(), s); err == nil && (h.Meta.Edges != 4 || h.Edges[3] != [2]uint32{4, 4}) {
			t.Errorf("with byte %d damaged it is %+v", at, h.Meta)
		}
		s.Close()
	}
	secret := bytes.Clone(whole)
	for at := 0; ; at++ { // the flags in the directory
		i := bytes.Index(secret[at:], []byte("PK\x01\x02"))
		if i < 0 {
			break
		}
		at += i
		secret[at+8] |= 1
	}
	readtest.Refused(t, Open, readtest.Put(t, "g.npz", secret), source.Options{}, "it is encrypted: save the file without a password")
}
