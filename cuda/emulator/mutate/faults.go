package main

// A fault is a text of a kernel, which stands there once, and what it becomes.
type fault struct {
	name     string
	file     string
	from, to string
	test     string // that has to see it
	in       string // the source that is compiled, if file is a header
}

func (f fault) source() string {
	if f.in != "" {
		return f.in
	}
	return f.file
}

var faults = []fault{
	{"no barrier between steps", "gemm.h", "    copyWait<stages - 2>();\n    barrier();", "    copyWait<stages - 2>();", "gemm_tf32", "gemm_tf32.cu"},
	{"a wait for one step less", "gemm.h", "copyWait<stages - 2>()", "copyWait<stages - 1>()", "gemm_tf32", "gemm_tf32.cu"},
	{"the stage at hand is overwritten", "gemm.h", "fill(i + stages - 1);\n    way.multiply(stage[i % stages].a, stage[i % stages].b);",
		"fill(i + stages);\n    way.multiply(stage[i % stages].a, stage[i % stages].b);", "gemm_f32", "gemm_f32.cu"},
	{"results over stages that are read", "gemm.h", "  barrier();  // all are done with the stages\n", "", "gemm_tf32", "gemm_tf32.cu"},
	{"results are read before they are there", "gemm.h", "way.value(i, p, j);\n  barrier();", "way.value(i, p, j);", "gemm_bf16", "gemm_bf16.cu"},
	{"the last chunk is whole", "gemm.h", "if (there > chunk) there = chunk;", "if (there > 0) there = chunk;", "gemm_tf32", "gemm_tf32.cu"},
	{"rows beyond the last are read", "gemm.h", "y >= (Deep ? rows : end)", "y > (Deep ? rows : end)", "gemm_tf32", "gemm_tf32.cu"},
	{"a part of k that is left out", "gemm_tf32.cu", "for (int p = 0; p < parts; p++)", "for (int p = 0; p < parts - 1; p++)", "gemm_tf32", ""},
	{"two words of a swapped", "gemm_tf32.cu", "g + j % 2 * 8, k + q + j / 2 * 4", "g + j / 2 * 8, k + q + j % 2 * 4", "gemm_tf32", ""},
	{"two words of b swapped", "gemm_tf32.cu", "k + q + j * 4", "k + q + (1 - j) * 4", "gemm_tf32", ""},
	{"halves of one row only", "gemm_bf16.cu", "p.at(row, k) | (uint32_t)p.at(row, k + 1) << 16", "p.at(row, k) | (uint32_t)p.at(row, k) << 16", "gemm_bf16", ""},
	{"entries beyond whole fours", "aggregate.cu", "    for (; j < n; j++) {", "    for (; j < n / 4 * 4; j++) {", "aggregate_f32", ""},
	{"a lane that returns", "aggregate.cu", "  Columns<Wide> c(cols);\n  int64_t from", "  Columns<Wide> c(cols);\n  if (!c.has(0)) return;\n  int64_t from", "aggregate_f32", ""},
	{"the same weight for all", "aggregate.cu", "w[k] = shuffle(weight, j + k);", "w[k] = shuffle(weight, j);", "aggregate_f32", ""},
	{"a shuffle by some", "aggregate.cu", "float v[4], w = shuffle(weight, j);", "float v[4], w = c.has(0) ? shuffle(weight, j) : 0.f;", "aggregate_bf16", ""},
	{"four where three are left", "rows.h", "return Wide && first + 4 <= cols;", "return Wide && first < cols;", "aggregate_f32", "aggregate.cu"},
	{"wide at odd places", "rows.h", "return aligned(base, stride * (int64_t)sizeof(T), 4 * (int)sizeof(T));", "return aligned(base, stride * (int64_t)sizeof(T), (int)sizeof(T));", "aggregate_f32", "aggregate.cu"},
	{"bias behind activation", "epilogue.h", "  if (e.bias) x += e.bias[column];\n  if (e.activation == ReLU && x <= 0.f) x = 0.f;", "  if (e.activation == ReLU && x <= 0.f) x = 0.f;\n  if (e.bias) x += e.bias[column];", "apply", "elements.cu"},
	{"no barrier before sums of warps", "partials.h", "mine[i];\n  barrier();", "mine[i];", "column_sums", "sums.cu"},
	{"the last rows of a block", "sums.cu", "first + each < rows ? first + each : rows;\n  float sum[4] = {};\n", "first + each < rows ? first + each : rows - 1;\n  float sum[4] = {};\n", "column_sums", ""},
	{"a maximum that forgets lanes", "loss.cu", "  for (int d = 16; d; d >>= 1) {\n    float other", "  for (int d = 8; d; d >>= 1) {\n    float other", "cross_entropy", ""},
	{"the last of equal logits", "loss.cu", "from < at)", "from > at)", "cross_entropy", ""},
	{"logits overwritten while they are read", "loss.cu", "  float own = z[label];\n  warpBarrier();\n", "  float own = z[label];\n", "cross_entropy", ""},
	{"no barrier before tallies", "loss.cu", "{loss, right};\n  barrier();", "{loss, right};", "cross_entropy", ""},
	{"rows without a label keep their gradient", "loss.cu", "grad && c < cols; c += 32) grad[c] = 0.f;", "grad && c < cols; c += 32) grad[c] = grad[c];", "cross_entropy", ""},
	{"a target that counts twice", "aggregate_max.cu", "    if (target == last) continue;\n", "", "aggregate_max", ""},
	{"the value of another edge", "aggregate_back.cu", "values[edges[base + lane()]]", "values[base + lane()]", "aggregate_back", ""},
	{"sums overwritten while they are read", "norm.cu", "  barrier();  // sums have been read\n", "", "layer_norm", ""},
	{"a mean of whole warps", "norm.cu", "sumOfWarp(sum) / (float)cols, square", "sumOfWarp(sum) / (float)((cols + 31) / 32 * 32), square", "layer_norm", ""},
	{"places that two lanes add to", "sparse.cu", "if (c % 32 == (int)lane()) to[c]", "if (at % 32 == (int)lane()) to[c]", "densify", ""},
	{"entries that begin elsewhere", "sparse.cu", "to[at - start] = dropped", "to[at] = dropped", "drop_values", ""},
	{"no wait for the last copies", "primitives.cu", "  copyWait<0>();\n", "", "check_copy", ""},
	{"no barrier after shared memory is written", "primitives.cu", "thread();\n  barrier();", "thread();", "check_block", ""},
	{"a draw too little", "keyed.h", "z ^ z >> 27", "z ^ z >> 26", "check_keyed", "primitives.cu"},
}
