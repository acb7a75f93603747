// The driver's calls: that work is done in the order that streams and events ask for,
// and that what a program forgot to ask for is not there.
#include <fstream>
#include <sstream>

#include "../device.h"
#include "test.h"

using namespace test;

namespace {

constexpr const char *policies[] = {"late", "eager", "rand:1", "rand:2", "rand:3"};

void policy(const char *name) {
  if (!emulator::device().queues.policy.parse(name)) wrong("no policy %s", name);
  emulator::device().schedule = schedule;
}

#define MUST(call) \
  if (CUresult code = call) return wrong("line %d: " #call " is %d", __LINE__, (int)code)
#define MUST_BE(want, call) \
  if (CUresult code = call; code != want) return wrong("line %d: " #call " is %d, want %d", __LINE__, (int)code, (int)want)

std::string ptx(const char *family) {
  std::ifstream f(std::string("cuda/kernels/") + family + ".ptx");
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

// A Program has what the tests need: w of n ones on the device, a kernel that takes
// half of g off it, pinned memory.
struct Program {
  static constexpr size_t n = 64;
  CUmodule module = nullptr;
  CUfunction sgd = nullptr;
  CUdeviceptr w = 0, g = 0;
  float *host = nullptr;
  CUstream a = nullptr, b = nullptr;
  CUevent event = nullptr, back = nullptr;

  CUresult begin() {
    std::string text = ptx("update");
    CUresult r = cuModuleLoadData(&module, text.c_str());
    if (!r) r = cuModuleGetFunction(&sgd, module, "sgd");
    if (!r) r = cuMemAlloc_v2(&w, n * 4);
    if (!r) r = cuMemAlloc_v2(&g, n * 4);
    if (!r) r = cuMemHostAlloc(reinterpret_cast<void **>(&host), n * 4, 0);
    if (!r) r = cuStreamCreate(&a, CU_STREAM_NON_BLOCKING);
    if (!r) r = cuStreamCreate(&b, CU_STREAM_NON_BLOCKING);
    if (!r) r = cuEventCreate(&event, 2);
    if (!r) r = cuEventCreate(&back, 0);
    return r;
  }
  ~Program() {
    emulator::device().broken = CUDA_SUCCESS;
    cuStreamDestroy_v2(a), cuStreamDestroy_v2(b);
    cuEventDestroy_v2(event), cuEventDestroy_v2(back);
    cuMemFree_v2(w), cuMemFree_v2(g), cuMemFreeHost(host);
    cuModuleUnload(module);
  }
  CUresult fill(CUdeviceptr at, float value, CUstream s) { return cuMemsetD32Async(at, std::bit_cast<unsigned>(value), n, s); }
  CUresult step(CUstream s, int64_t elements = n) {
    CUdeviceptr none = 0;
    float rate = 0.5f, zero = 0;
    void *arguments[] = {&w, &g, &none, &elements, &rate, &zero, &zero};
    return cuLaunchKernel(sgd, 1, 1, 1, 256, 1, 1, 0, s, arguments, nullptr);
  }
  CUresult read(CUstream s) { return cuMemcpyDtoHAsync_v2(host, w, n * 4, s); }
  void all(const char *what, double want) {
    for (size_t i = 0; i < n; i++) near(what, 0, (int)i, host[i], want, 0);
  }
};

}  // namespace

TEST(driver_orders_by_events) {
  for (auto *name : policies) {
    policy(name);
    Program p;
    MUST(p.begin());
    MUST(p.fill(p.w, 1, p.a));
    MUST(p.fill(p.g, 4, p.b));
    MUST(cuEventRecord(p.event, p.b));
    MUST(cuStreamWaitEvent(p.a, p.event, 0));
    MUST(p.step(p.a));
    MUST(cuEventRecord(p.back, p.a));
    MUST(cuStreamWaitEvent(p.b, p.back, 0));
    MUST(p.read(p.b));
    MUST(cuStreamSynchronize(p.b));
    p.all("what events order", -1);
  }
}

// What nobody waited for has not happened, where work is done late.
TEST(driver_shows_what_is_forgotten) {
  policy("late");
  Program p;
  MUST(p.begin());
  MUST(p.fill(p.w, 1, p.a));
  MUST(p.read(p.b));
  MUST(cuStreamSynchronize(p.b));
  near("a stream that did not wait read", 0, 0, p.host[0], NAN, 0);

  MUST(p.read(p.a));
  p.host[0] = 77;
  near("memory that was read before its copy", 0, 0, p.host[0], 77, 0);
  MUST(cuStreamSynchronize(p.a));
  p.all("after waiting", 1);

  for (size_t i = 0; i < p.n; i++) p.host[i] = 5;
  MUST(cuMemcpyHtoDAsync_v2(p.w, p.host, p.n * 4, p.a));
  for (size_t i = 0; i < p.n; i++) p.host[i] = 6;
  MUST(p.read(p.a));
  MUST(cuStreamSynchronize(p.a));
  p.all("a pinned buffer that was used again too early", 6);

  float pageable[p.n];
  for (float &x : pageable) x = 8;
  MUST(cuMemcpyHtoDAsync_v2(p.w, pageable, p.n * 4, p.a));
  for (float &x : pageable) x = 9;
  MUST(cuMemcpyDtoHAsync_v2(pageable, p.w, p.n * 4, p.a));
  near("pageable memory was copied at once", 0, 0, pageable[0], 8, 0);
}

TEST(driver_queries_come_true) {
  for (auto *name : policies) {
    policy(name);
    Program p;
    MUST(p.begin());
    MUST(p.fill(p.w, 3, p.a));
    MUST(cuEventRecord(p.event, p.a));
    MUST(p.read(p.a));
    int turns = 0;
    while (cuEventQuery(p.event) == CUDA_ERROR_NOT_READY) turns++;
    while (cuStreamQuery(p.a) == CUDA_ERROR_NOT_READY) turns++;
    p.all("after queries", 3);
    if (std::string(name) == "late" && turns == 0) wrong("nothing was late");
  }
}

// A graph forks to a second stream and comes back; it is launched again and again.
TEST(driver_graphs) {
  for (auto *name : policies) {
    policy(name);
    Program p;
    CUgraph graph;
    CUgraphExec exec;
    MUST(p.begin());
    MUST(p.fill(p.w, 1, p.a));
    MUST(cuStreamSynchronize(p.a));
    MUST(cuStreamBeginCapture_v2(p.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuEventRecord(p.event, p.a));
    MUST(cuStreamWaitEvent(p.b, p.event, 0));
    MUST(p.fill(p.g, 2, p.b));
    MUST(cuEventRecord(p.back, p.b));
    MUST(cuStreamWaitEvent(p.a, p.back, 0));
    MUST(p.step(p.a));
    MUST_BE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(p.a));
    MUST_BE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemFree_v2(p.g));
    MUST(cuStreamEndCapture(p.a, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphDestroy(graph));
    MUST(p.read(p.a));
    MUST(cuStreamSynchronize(p.a));
    p.all("what was captured has not run", 1);
    for (int i = 0; i < 3; i++) MUST(cuGraphLaunch(exec, p.b));
    MUST(cuGraphExecDestroy(exec));
    MUST(p.read(p.b));
    MUST(cuStreamSynchronize(p.b));
    p.all("three launches of a graph", -2);

    MUST(cuStreamBeginCapture_v2(p.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuEventRecord(p.event, p.a));
    MUST(cuStreamWaitEvent(p.b, p.event, 0));
    MUST(p.fill(p.g, 2, p.b));
    MUST_BE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(p.a, &graph));
    MUST(cuStreamSynchronize(p.b));
  }
}

// A kernel that writes beside its memory breaks the device, for all calls after.
TEST(driver_finds_writes_beside) {
  policy("eager");
  Program p;
  MUST(p.begin());
  MUST(p.fill(p.w, 1, p.a));
  MUST(p.fill(p.g, 1, p.a));
  MUST(p.step(p.a, p.n + 1));
  MUST_BE(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(p.a));
  MUST_BE(CUDA_ERROR_LAUNCH_FAILED, cuMemcpyDtoH_v2(p.host, p.w, 4));
}

TEST(driver_compares_parameters) {
  CUmodule m = nullptr;
  std::string text = ptx("update");
  size_t at = text.find(".param .f32");
  if (at == std::string::npos) return wrong("no float among the parameters");
  text.replace(at, 11, ".param .f64");
  MUST_BE(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&m, text.c_str()));
  MUST_BE(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&m, "no PTX"));
}

// A graph made of nodes: each behind the one before, with arguments that are set anew.
TEST(driver_graphs_of_nodes) {
  for (auto *name : policies) {
    policy(name);
    Program p;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode first, second;
    MUST(p.begin());
    MUST(p.fill(p.w, 1, p.a));
    MUST(p.fill(p.g, 2, p.a));
    MUST(cuGraphCreate(&graph, 0));
    CUdeviceptr none = 0;
    int64_t n = p.n;
    float rate = 0.5f, zero = 0, decay = 1;
    void *arguments[] = {&p.w, &p.g, &none, &n, &rate, &zero, &zero}, *decaying[] = {&p.w, &p.g, &none, &n, &rate, &zero, &decay};
    CUDA_KERNEL_NODE_PARAMS step = {p.sgd, 1, 1, 1, 256, 1, 1, 0, arguments, nullptr, nullptr, nullptr}, then = step;
    then.kernelParams = decaying;
    MUST(cuGraphAddKernelNode_v2(&first, graph, nullptr, 0, &step));
    MUST(cuGraphAddKernelNode_v2(&second, graph, &first, 1, &then));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    rate = 99;  // was copied
    MUST(cuGraphLaunch(exec, p.a));
    MUST(p.read(p.a));
    MUST(cuStreamSynchronize(p.a));
    p.all("two steps", -1);  // 1 - .5*2, then 0 - .5*(2 + 0)
    rate = 0.25f;
    MUST(cuGraphLaunch(exec, p.a));
    MUST(cuGraphExecKernelNodeSetParams_v2(exec, first, &step));
    MUST(p.read(p.a));
    MUST(cuStreamSynchronize(p.a));
    p.all("what was launched before", -2);  // -1 - 1 = -2, then -2 - .5*(2 - 2)
    MUST(cuGraphLaunch(exec, p.a));
    MUST(p.read(p.a));
    MUST(cuStreamSynchronize(p.a));
    p.all("another rate in the first", -2.25);  // -2 - .25*2 = -2.5, then -2.5 - .5*(2 - 2.5)
    MUST(cuGraphDestroy(graph));
    MUST_BE(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams_v2(exec, first, &step));
    MUST(cuGraphExecDestroy(exec));
  }
}
