#include "fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// switch_stacks keeps what a function call must not change on this stack, stores
// where that is, and goes on with the other.
extern "C" void emulator_switch_stacks(void **save, void *load);
#if !defined(__x86_64__)
#error "the emulator's fibers are written for x86-64"
#endif
asm(R"(
.text
.globl emulator_switch_stacks
.hidden emulator_switch_stacks
.type emulator_switch_stacks, @function
emulator_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_switch_stacks, .-emulator_switch_stacks
.section .note.GNU-stack, "", @progbits
.text
)");

namespace emulator {

namespace {
constexpr size_t page = 4096;
constexpr int saved = 6;  // registers that switch_stacks keeps

void *scheduler;  // its stack pointer while a fiber runs
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t stack_bytes = 256 << 10;
void *scheduler_asan;
const void *scheduler_bottom;
size_t scheduler_bytes;
#else
constexpr size_t stack_bytes = 64 << 10;
#endif
}  // namespace

size_t Stacks::bytes() { return stack_bytes; }

char *Stacks::get(size_t i) {
  while (all_.size() <= i) {
    void *p = mmap(nullptr, page + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p, page, PROT_NONE)) {
      perror("emulator: no memory for the stack of a thread");
      abort();
    }
    all_.push_back(static_cast<char *>(p) + page);
  }
  return all_[i];
}

Stacks::~Stacks() {
  for (char *p : all_) munmap(p - page, page + stack_bytes);
}

void prepare(Fiber &f, void (*entry)()) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(f.stack, stack_bytes);
#endif
  void **top = reinterpret_cast<void **>(f.stack + stack_bytes);
  *--top = nullptr;  // where entry would return to
  *--top = reinterpret_cast<void *>(entry);
  for (int i = 0; i < saved; i++) *--top = nullptr;
  f.stack_pointer = top;
  f.asan_stack = nullptr;
}

void enter(Fiber &f) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler_asan, f.stack, stack_bytes);
#endif
  emulator_switch_stacks(&scheduler, f.stack_pointer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_asan, nullptr, nullptr);
#endif
}

void begun() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom, &scheduler_bytes);
#endif
}

void leave(Fiber &f, [[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &f.asan_stack, scheduler_bottom, scheduler_bytes);
#endif
  emulator_switch_stacks(&f.stack_pointer, scheduler);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(f.asan_stack, &scheduler_bottom, &scheduler_bytes);
#endif
}

}  // namespace emulator
