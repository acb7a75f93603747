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
	{"entries beyond whole fours", "entries.h", "  for (; j < n; j++) {", "  for (; j < n / 4 * 4; j++) {", "aggregate_f32", "aggregate.cu"},
	{"a lane that returns", "aggregate.cu", "  Columns<Wide> c(cols);\n  int64_t from", "  Columns<Wide> c(cols);\n  if (!c.has(0)) return;\n  int64_t from", "aggregate_f32", ""},
	{"the same weight for all", "entries.h", "w[k] = shuffle(weight, j + k);", "w[k] = shuffle(weight, j);", "aggregate_f32", "aggregate.cu"},
	{"a shuffle by some", "entries.h", "float v[4], w = shuffle(weight, j);", "float v[4], w = c.has(0) ? shuffle(weight, j) : 0.f;", "aggregate_bf16", "aggregate.cu"},
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
	{"a head's last step of the butterfly", "heads.h", "for (int d = group >> 1; d; d >>= 1)", "for (int d = group >> 1; d > 1; d >>= 1)", "head_dot", "head_dot.cu"},
	{"columns beyond a head", "heads.h", "return mine() && at(tile, i) < width;", "return mine();", "head_dot", "head_dot.cu"},
	{"a tile that is left out", "heads.h", "Others && t < tiles;", "Others && t < tiles - 1;", "head_dot", "head_dot.cu"},
	{"wide heads of odd widths", "heads.h", "return width % 4 == 0 && wide(base, stride);", "return wide(base, stride);", "attend", "attend.cu"},
	{"the head of the lane's first column", "head_dot.cu", "head[i] = c.at(i) / width;", "head[i] = c.at(0) / width;", "head_dot", ""},
	{"what was added up does not shrink", "attend.cu", "sum[i] *= shrink;", "sum[i] *= 1.f;", "attend", ""},
	{"a sum that does not shrink", "attend.cu", "    total *= shrink;\n", "", "attend", ""},
	{"the largest of the last four only", "attend.cu", "s[N], top = largest;", "s[N], top = 0.f;", "attend", ""},
	{"the sum of what is kept", "attend.cu", "total += e;", "total += w;", "attend", ""},
	{"the key of another entry", "attend.h", "shuffle((uint32_t)(entry >> 32), from);", "shuffle((uint32_t)(entry >> 32), 0);", "attend", "attend.cu"},
	{"targets from the first vertex", "attend.h", "vertices[own + target]", "vertices[target]", "attend", "attend.cu"},
	{"a shuffle by heads that are there", "attend.h", "if (!threshold) return 1.f;", "if (!threshold || head > 1) return 1.f;", "attend", "attend.cu"},
	{"entries behind whole fours", "attend.h", "for (; j < n; j++) step", "for (; j < n - n % 2; j++) step", "attend", "attend.cu"},
	{"a slope that the gradient lacks", "attend_back.cu", "dleft = fused(alpha * (gets - t.mean), slant, dleft);", "dleft += alpha * (gets - t.mean);", "attend", ""},
	{"a mean that is not taken off", "attend_back.cu", "t.steeped - t.mean * t.slopes", "t.steeped", "attend", ""},
	{"dx without dropout", "attend_back.cu", "fused(alpha * kept, v[k][i], sum[i])", "fused(alpha, v[k][i], sum[i])", "attend", ""},
	{"the other end's slope", "attend_v2_back.cu", "z = u[k][i] + score.own[i], slant", "z = u[k][i] - score.own[i], slant", "attend_v2", ""},
	{"no barrier before the gradient of a", "attend_v2_back.cu", "= da[i];\n  barrier();", "= da[i];", "attend_v2", ""},
	{"the last sources of a block", "attend_v2_back.cu", "first + each < rows ? first + each : rows;", "first + each < rows ? first + each : rows - 1;", "attend_v2", ""},
	{"a mean of targets that is lost", "attend_v2_back.cu", "{0.f, largest, inverse, t.mean}", "{0.f, largest, inverse, 0.f}", "attend_v2", ""},
	{"no barrier before sums of warps are added", "scan.h", "totals[warp()] = sum;\n  barrier();", "totals[warp()] = sum;", "scan", "scan.cu"},
	{"sums of lanes that come after", "scan.h", "if ((int)lane() >= d) sum += other;", "sum += other;", "scan", "scan.cu"},
	{"nothing behind the last", "scan.cu", "if (first + i <= end) x[first + i]", "if (first + i < end) x[first + i]", "scan", ""},
	{"more is held than fits", "scan.cu", "(sum > limit ? 0 : sum)", "sum", "draw_sources", ""},
	{"a draw that came just before", "draw.h", "if ((int)lane() > j && other == p)", "if ((int)lane() > j + 1 && other == p)", "draw_sources", "draw.cu"},
	{"draws of the 32 before", "draw.h", "for (int j = 0; j < first; j++)", "for (int j = 0; j < first - 16; j++)", "draw_sources", "draw.cu"},
	{"draws are read before they are there", "draw.cu", "      warpBarrier();  // the next read these\n", "", "draw_sources", ""},
	{"what does not fit is written", "draw.cu", "t >= *targets || *entries == 0", "t >= *targets", "draw_sources", ""},
	{"no place for a self-loop", "draw.cu", "counts[first + i] = r.drawn + r.loop;", "counts[first + i] = r.drawn;", "draw_sources", ""},
	{"a mean without the self-loop", "draw_mean.cu", "int entries = r.drawn + r.loop;", "int entries = r.drawn;", "draw_mean_f32", ""},
	{"the value of a row's first edge", "draw_mean.cu", "valueOf(g, scale, own, r.from + at,", "valueOf(g, scale, own, r.from,", "draw_mean_f32", ""},
	{"targets beyond the last", "draw_mean.cu", "if (t >= *targets) return;", "if (t > *targets) return;", "draw_mean_bf16", ""},
	{"the last to come", "number.cu", "if (*word > number) minAtomic(word, number);", "*word = number;", "number", ""},
	{"a place of another", "number.cu", "if (has == nobody || has == v) return at;", "return at;", "number", ""},
	{"targets that are new", "number.cu", "lower(table, at, (int)(*targets + e));", "lower(table, at, (int)e);", "number", ""},
	{"another root that is there before", "number.cu", "(uint32_t)i) minAtomic(again, (int)i);", "(uint32_t)i) *again = (int)i;", "number_check", ""},
	{"counters written while they are read", "transpose.cu", "      warpBarrier();  // all have read\n", "", "transpose", ""},
	{"no barrier before counters of warps are added", "transpose.cu", "      warpBarrier();\n    }\n    barrier();", "      warpBarrier();\n    }", "transpose", ""},
	{"no barrier before places are read", "transpose.cu", "    next += n;\n  }\n  barrier();", "    next += n;\n  }", "transpose", ""},
	{"entries beyond the last are sorted", "transpose.cu", "if (e.entry[r] >= 0) to[", "to[", "transpose", ""},
	{"the first of rows that begin alike", "transpose.cu", "if (indptr[middle] <= e) low", "if (indptr[middle] < e) low", "transpose", ""},
	{"bytes behind the last whole 16", "fill.cu", "from + 16 <= bytes && aligned", "from < bytes && aligned", "fill", ""},
	{"16 bytes at odd places", "fill.cu", " && aligned(at, 0, 16)", "", "fill", ""},
	{"no barrier before shares of warps are added", "sums.cu", "[lane()] = sum;\n  barrier();", "[lane()] = sum;", "column_sums", ""},
	{"tallies of 16 lanes", "loss.cu", "  loss = sumOfWarp(loss);", "  loss += shuffleXor(loss, 16);", "add_tallies", ""},
	{"parts behind whole fours", "gemm_tf32.cu", "  for (; p < parts; p++) {", "  for (; p < parts - 1; p++) {", "gemm_tf32", ""},
	{"no wait for the last copies", "primitives.cu", "  copyWait<0>();\n", "", "check_copy", ""},
	{"no barrier after shared memory is written", "primitives.cu", "thread();\n  barrier();", "thread();", "check_block", ""},
	{"a draw too little", "keyed.h", "z ^ z >> 27", "z ^ z >> 26", "check_keyed", "primitives.cu"},
}
