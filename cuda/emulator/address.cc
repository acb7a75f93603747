#include "address.h"

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#include "block.h"

namespace emulator {

#if defined(__SANITIZE_ADDRESS__)
// The sanitizer tells more than we could.
Addresses::Addresses() = default;
Addresses::~Addresses() = default;
#else

namespace {

struct sigaction before_segv, before_bus;
thread_local bool ours;
uintptr_t touched;

// landed is where the fiber finds itself instead.
void landed() { fail("address %#zx is not memory of the device", (size_t)touched); }

void handle(int signal, siginfo_t *info, void *context) {
  if (!ours || !fiber) {
    const struct sigaction &before = signal == SIGSEGV ? before_segv : before_bus;
    if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
    sigaction(signal, &before, nullptr);  // and it comes again
    return;
  }
  touched = reinterpret_cast<uintptr_t>(info->si_addr);
  auto *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  // Below the red zone, and aligned as a function finds it that was called.
  registers[REG_RSP] = ((registers[REG_RSP] - 256) & ~15ll) - 8;
  registers[REG_RIP] = reinterpret_cast<greg_t>(&landed);
}

}  // namespace

Addresses::Addresses() {
  struct sigaction mine = {};
  mine.sa_sigaction = handle;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ours = true;
  sigaction(SIGSEGV, &mine, &before_segv);
  sigaction(SIGBUS, &mine, &before_bus);
}

Addresses::~Addresses() {
  sigaction(SIGSEGV, &before_segv, nullptr);
  sigaction(SIGBUS, &before_bus, nullptr);
  ours = false;
}
#endif

}  // namespace emulator
