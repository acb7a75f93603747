// Kernels that do what a GPU leaves undefined: each ends with its sentence, in every
// schedule, and the next launch is as good as new.
#include "../../kernels/gk.h"
#include "test.h"

using namespace gk;

KERNEL(fault_misaligned, 32, float *p) { store4(p + 1, load4(p)); }
KERNEL(fault_parted, 32, int *out) {
  if (thread() % 2) out[0] = shuffle(1, 0);
  else out[0] = shuffleXor(1, 1);
}
KERNEL(fault_lane_returned, 32, int *out) {
  if (thread() == 7) return;
  out[0] = shuffle(1, 0);
}
KERNEL(fault_thread_returned, 64, int *out) {
  if (thread() == 40) return;
  barrier();
  *out = 1;
}
KERNEL(fault_two_barriers, 64, int *out) {
  if (thread() < 32) barrier();
  else
    barrier();
  *out = 1;
}
KERNEL(fault_shuffle_and_barrier, 32, int *out) {
  if (thread() == 0) barrier();
  *out = shuffle(1, 0);
}
KERNEL(fault_copies_left, 32, float *from) {
  using Floats = float[4];
  SHARED(Floats, to);
  copy16(to, from, 16);
  copyCommit();
}
KERNEL(fault_too_much_shared, 32, float *to) {
  using Floats = float[13000];
  SHARED(Floats, room);
  *to = room[thread()];
}

KERNEL(fault_nowhere, 32, float *to) {
  const float *nowhere = *reinterpret_cast<const float *const *>(to);  // null
  to[8] = nowhere[1000];
}

TEST(faults) {
  struct {
    const char *kernel, *sentence;
  } faults[] = {
      {"fault_misaligned", "misaligned"},       {"fault_parted", "the warp has parted"},
      {"fault_lane_returned", "return"},        {"fault_thread_returned", "returned"},
      {"fault_two_barriers", "at once"},        {"fault_shuffle_and_barrier", "for ever"},
      {"fault_copies_left", "had landed"},      {"fault_too_much_shared", "shared memory"},
#if !defined(__SANITIZE_ADDRESS__)  // which ends the program
      {"fault_nowhere", "is not memory"},
#endif
  };
  for (auto &f : faults) {
    alignas(16) float memory[64] = {};
    std::string said = test::launch(f.kernel, {2, 1, 1}, {test::box(&memory[0])});
    bool copies = std::string(f.kernel) == "fault_copies_left" && test::schedule.eager_copies;
    if (copies ? !said.empty() : said.find(f.sentence) == std::string::npos || said.find(f.kernel) != 0)
      test::wrong("%s ends with \"%s\"", f.kernel, said.c_str());
    test::Buffer<uint32_t> out(192);
    test::run("check_warp", {1, 1, 1}, out.data());
  }
}
