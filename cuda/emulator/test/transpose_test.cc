#include "scans.h"

using namespace test;

// Columns with no entry, one, and most of them; so many that they take three digits.
TEST(transpose) {
  struct {
    int rows, cols;
    int64_t entries;
  } shapes[] = {{3, 5, 0}, {1, 1, 1}, {7, 9, 40}, {50, 256, 2048}, {300, 70000, 4500}};
  for (auto s : shapes) {
    size_t n = (size_t)s.entries;
    Buffer<int64_t> indptr((size_t)s.rows + 1), bounds((size_t)s.cols + 1);
    Buffer<int32_t> columns(n), rows(n), edges(n), spare(n);
    indptr[0] = 0;
    for (int r = 0; r < s.rows; r++) {
      int64_t left = s.entries - indptr[(size_t)r], share = r % 5 == 1 ? 0 : left / (s.rows - r) + below(3);
      indptr[(size_t)r + 1] = indptr[(size_t)r] + (r + 1 == s.rows || share > left ? left : share);
    }
    for (size_t e = 0; e < n; e++) columns[e] = below(3) ? below(s.cols) : s.cols - 1;
    // By columns, in the plainest way.
    std::vector<int64_t> ends((size_t)s.cols + 1), want_bounds = {0};
    for (size_t e = 0; e < n; e++) ends[(size_t)columns[e]]++;
    for (int c = 0; c < s.cols; c++) want_bounds.push_back(want_bounds.back() + ends[(size_t)c]);
    std::vector<int64_t> next = want_bounds;
    std::vector<int32_t> want_rows(n), want_edges(n);
    for (int r = 0; r < s.rows; r++)
      for (int64_t e = indptr[(size_t)r]; e < indptr[(size_t)r + 1]; e++) {
        auto to = (size_t)next[(size_t)columns[(size_t)e]]++;
        want_rows[to] = r, want_edges[to] = (int32_t)e;
      }
    int64_t targets = s.rows, sources = s.cols, room = s.entries + 2048, number;
    unsigned blocks = (unsigned)((room + 2047) / 2048);
    Buffer<int64_t> counts(blocks * 256 + 1), partial(blocks * 256 / 1024 + 1);
    int32_t *from = nullptr;
    for (int shift : {0, 8, 16}) {
      int32_t *to = shift == 8 ? spare.data() : edges.data();
      run("transpose_counts", {blocks, 1, 1}, counts.data(), &number, from, columns.data(), &s.entries, shift);
      run("scan_sums", tiles(blocks * 256), partial.data(), counts.data(), &number);
      run("scan_apply", tiles(blocks * 256), counts.data(), partial.data(), &number, nullptr, unlimited, nullptr);
      run("transpose_sort", {blocks, 1, 1}, to, counts.data(), from, columns.data(), &s.entries, shift);
      from = to;
    }
    run("transpose_rows", threads(room), rows.data(), edges.data(), indptr.data(), &targets, &s.entries);
    run("transpose_columns", threads(s.cols + 300), bounds.data(), edges.data(), columns.data(), &sources, &s.entries);
    same("edges", edges, want_edges);
    same("rows", rows, want_rows);
    same("bounds", bounds, want_bounds);
  }
}
