// The baseline of hopmesh's sampler: the same algorithm and generator, in C++.
//
//   sampler GRAPH SEED EPOCH BATCH THREADS FANOUT...
//
// GRAPH holds, as little-endian integers of 64 bits, how many vertices, edges and
// roots there are; then vertices+1 bounds of 64 bits, and the sources and the roots,
// of 32. The roots are cut into batches, which threads take in turn. It goes through
// them once for the checksum, then again for the time, and prints
//
//   EDGES CHECKSUM SECONDS CPU_SECONDS

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

using std::size_t;
using std::uint32_t;
using std::uint64_t;

namespace {

constexpr size_t group = 64;
constexpr uint64_t neighbor = 3;  // the generator's purpose

uint64_t with(uint64_t key, uint64_t x) {
  uint64_t z = key + (x + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

struct Draws {
  uint64_t state;
  uint64_t next() {
    state += 0xa0761d6478bd642fu;
    auto p = static_cast<unsigned __int128>(state) * (state ^ 0xe7037ed1a0b428dbu);
    return static_cast<uint64_t>(p >> 64) ^ static_cast<uint64_t>(p);
  }
  uint32_t below(uint64_t n) {
    return static_cast<uint32_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }
};

struct Graph {
  std::vector<int64_t> bounds;
  std::vector<uint32_t> sources;
  std::vector<uint32_t> roots;
};

// What must hold of what is drawn, in a number that no order of batches changes.
uint64_t mixed(uint64_t step, uint64_t hop, uint64_t target, uint64_t source) {
  return with(with(with(with(0, step), hop), target), source);
}

struct Block {
  std::vector<int64_t> bounds;
  std::vector<uint32_t> sources;
  size_t targets = 0;
};

struct Row {
  int64_t from;
  uint32_t degree, drawn;
};

// A group of targets on its way through the stages.
struct Flock {
  size_t first, end, entries, at;
  Row rows[group];
  std::vector<uint32_t> positions;
};

// Into the second cache, whose queue is longer.
void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

class Sampler {
 public:
  Sampler(const Graph& g, const std::vector<uint32_t>& fanouts)
      : g_(g), fanouts_(fanouts), seen_(g.bounds.size() - 1), blocks_(fanouts.size()) {}

  // Draws the blocks of the roots and returns how many edges they have.
  uint64_t sample(uint64_t key, const uint32_t* roots, size_t n) {
    stamp_++;
    if (vertices_.size() < n) vertices_.resize(n);
    std::copy(roots, roots + n, vertices_.begin());
    for (size_t i = 0; i < n; i++) seen_[roots[i]] = uint64_t(stamp_) << 32 | i;
    count_ = n;
    uint64_t edges = 0;
    for (size_t h = 0; h < fanouts_.size(); h++) {
      hop(blocks_[h], fanouts_[h], with(key, h));
      edges += blocks_[h].bounds.back();
    }
    return edges;
  }

  uint64_t checksum(uint64_t step) const {
    uint64_t sum = 0;
    for (size_t h = 0; h < blocks_.size(); h++)
      for (size_t t = 0; t < blocks_[h].targets; t++)
        for (int64_t e = blocks_[h].bounds[t]; e < blocks_[h].bounds[t + 1]; e++)
          sum += mixed(step, h, vertices_[t], vertices_[blocks_[h].sources[e]]);
    return sum;
  }

 private:
  // Groups go through the stages one behind the other, so that memory has the time
  // of the stages between.
  void hop(Block& b, uint32_t fanout, uint64_t key) {
    const size_t targets = count_, groups = (targets + group - 1) / group;
    b.targets = targets;
    b.bounds.resize(targets + 1);
    b.bounds[0] = 0;
    size_t at = 0;
    for (size_t i = 0; i < groups + 3; i++) {
      if (i < groups) {
        Flock& f = flocks_[i % 4];
        f.first = i * group;
        f.end = std::min(f.first + group, targets);
        locate(f);
      }
      if (i >= 1 && i - 1 < groups) draw(flocks_[(i - 1) % 4], fanout, key);
      if (i >= 2 && i - 2 < groups) {
        Flock& f = flocks_[(i - 2) % 4];
        f.at = at;
        at += f.entries;
        if (b.sources.size() < at) b.sources.resize(at * 3 / 2);
        collect(f, b);
      }
      if (i >= 3 && i - 3 < groups) {
        const Flock& f = flocks_[(i - 3) % 4];
        if (vertices_.size() < count_ + f.entries + 1) vertices_.resize((count_ + f.entries + 1) * 3 / 2);
        number(b.sources.data() + f.at, f.entries);
      }
    }
  }

  void locate(const Flock& f) const {
    for (size_t i = f.first; i < f.end; i++) prefetch(&g_.bounds[vertices_[i]]);
  }

  void draw(Flock& f, uint32_t fanout, uint64_t key) const {
    size_t entries = 0, position = 0;
    if (f.positions.size() < group * fanout) f.positions.resize(group * fanout);
    for (size_t i = f.first; i < f.end; i++) {
      const uint32_t v = vertices_[i];
      Row& r = f.rows[i - f.first];
      r.from = g_.bounds[v];
      r.degree = r.drawn = static_cast<uint32_t>(g_.bounds[v + 1] - r.from);
      const uint32_t* base = g_.sources.data() + r.from;
      if (fanout == 0 || r.degree <= fanout) {
        for (uint32_t p = 0; p < std::min(r.degree, 128u); p += 16) prefetch(base + p);
      } else {
        r.drawn = fanout;
        uint32_t* to = &f.positions[position];
        without(to, fanout, r.degree, with(key, v));
        for (uint32_t j = 0; j < fanout; j++) prefetch(base + to[j]);
        position += fanout;
      }
      entries += r.drawn;
    }
    f.entries = entries;
  }

  static void without(uint32_t* to, uint32_t k, uint32_t n, uint64_t key) {
    Draws draws{key};
    uint64_t mask = 0;
    uint32_t last = n - k;
    for (uint32_t i = 0; i < k; i++, last++) {
      uint32_t p = draws.below(uint64_t(last) + 1);
      if ((mask >> (p & 63) & 1) && ((n <= 64 && k <= 64) || std::find(to, to + i, p) != to + i)) p = last;
      mask |= uint64_t(1) << (p & 63);
      to[i] = p;
    }
  }

  void collect(const Flock& f, Block& b) const {
    uint32_t* to = b.sources.data() + f.at;
    const uint32_t* position = f.positions.data();
    for (size_t i = f.first; i < f.end; i++) {
      const Row& r = f.rows[i - f.first];
      const uint32_t* from = g_.sources.data() + r.from;
      if (r.drawn == r.degree) {
        for (uint32_t j = 0; j < r.drawn; j++) to[j] = from[j];
      } else {
        for (uint32_t j = 0; j < r.drawn; j++) to[j] = from[position[j]];
        position += r.drawn;
      }
      for (uint32_t j = 0; j < r.drawn; j++) prefetch(&seen_[to[j]]);
      to += r.drawn;
      b.bounds[i + 1] = b.bounds[i] + r.drawn;
    }
  }

  void number(uint32_t* ids, size_t n) {
    uint32_t* all = vertices_.data();
    uint64_t* seen = seen_.data();
    const uint32_t stamp = stamp_;
    size_t next = count_;
    for (size_t i = 0; i < n; i++) {
      const uint32_t v = ids[i];
      const uint64_t was = seen[v];
      const bool fresh = static_cast<uint32_t>(was >> 32) != stamp;
      const uint32_t number = fresh ? static_cast<uint32_t>(next) : static_cast<uint32_t>(was);
      all[next] = v;
      seen[v] = uint64_t(stamp) << 32 | number;
      ids[i] = number;
      next += fresh;
    }
    count_ = next;
  }

  const Graph& g_;
  const std::vector<uint32_t> fanouts_;
  std::vector<uint64_t> seen_;
  uint32_t stamp_ = 0;
  std::vector<uint32_t> vertices_;
  size_t count_ = 0;
  std::vector<Block> blocks_;
  Flock flocks_[4];
};

template <typename T>
bool read(std::FILE* f, std::vector<T>& to, uint64_t n) {
  to.resize(n);
  return std::fread(to.data(), sizeof(T), n, f) == n;
}

bool load(const char* path, Graph& g) {
  std::FILE* f = std::fopen(path, "rb");
  if (!f) return false;
  std::vector<uint64_t> sizes;
  bool ok = read(f, sizes, 3) && read(f, g.bounds, sizes[0] + 1) && read(f, g.sources, sizes[1]) && read(f, g.roots, sizes[2]);
  std::fclose(f);
  return ok;
}

double cpu() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  Graph g;
  if (argc < 6 || !load(argv[1], g)) {
    std::fprintf(stderr, "the graph cannot be read\n");
    return 1;
  }
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10), epoch = std::strtoull(argv[3], nullptr, 10);
  const size_t batch = std::strtoull(argv[4], nullptr, 10), threads = std::strtoull(argv[5], nullptr, 10);
  std::vector<uint32_t> fanouts;
  for (int i = 6; i < argc; i++) fanouts.push_back(std::strtoul(argv[i], nullptr, 10));
  const uint64_t key = with(with(with(0, seed), neighbor), epoch);
  const size_t steps = (g.roots.size() + batch - 1) / batch;

  std::vector<Sampler> samplers;
  for (size_t w = 0; w < threads; w++) samplers.emplace_back(g, fanouts);
  std::atomic<uint64_t> edges{0}, checksum{0};
  auto pass = [&](bool check) {
    std::atomic<size_t> next{0};
    edges = 0;
    std::vector<std::thread> running;
    for (size_t w = 0; w < threads; w++)
      running.emplace_back([&, w] {
        uint64_t drawn = 0, sum = 0;
        for (size_t step; (step = next++) < steps;) {
          const size_t first = step * batch;
          drawn += samplers[w].sample(with(key, step), &g.roots[first], std::min(batch, g.roots.size() - first));
          if (check) sum += samplers[w].checksum(step);
        }
        edges += drawn;
        checksum += sum;
      });
    for (auto& t : running) t.join();
  };
  pass(true);
  const auto start = std::chrono::steady_clock::now();
  const double before = cpu();
  pass(false);
  const double used = cpu() - before;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%llu %llu %.9f %.9f\n", (unsigned long long)edges.load(), (unsigned long long)checksum.load(), took.count(), used);
  return 0;
}
