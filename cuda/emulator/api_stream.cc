// Calls about streams and events, and about captures.
#include <algorithm>

#include "api.h"

using namespace emulator;

namespace {

Event *event(CUevent e) { return reinterpret_cast<Event *>(e); }

void into(Stream *s, Item item) { s->capture->lanes[s->captured].push_back(std::move(item)); }

// join makes a stream part of what is captured.
void join(Stream *s, Graph *g) {
  s->capture = g;
  s->captured = g->lanes.size();
  g->lanes.emplace_back();
}

// joined says whether all lanes but the first end in a mark that another waits for.
bool joined(const Graph &g) {
  for (size_t i = 1; i < g.lanes.size(); i++) {
    if (g.lanes[i].empty()) continue;
    const auto &last = g.lanes[i].back().set;
    bool waited = false;
    for (const auto &lane : g.lanes)
      waited |= std::any_of(lane.begin(), lane.end(), [&](const Item &item) { return last && item.wait == last; });
    if (!waited) return false;
  }
  return true;
}

}  // namespace

CUresult emulator::put(Device &d, CUstream handle, std::function<void()> work) {
  Stream *s = stream(d, handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  if (s->capture) {
    into(s, {std::move(work), nullptr, nullptr});
    return CUDA_SUCCESS;
  }
  if (s == d.standard) {
    if (unsafe(d)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    d.queues.finish_blocking();
  } else if (s->blocking) {
    d.queues.finish(d.standard);
  }
  d.queues.submit(s, {std::move(work), nullptr, nullptr});
  return CUDA_SUCCESS;
}

API cuStreamCreate(CUstream *s, unsigned flags) {
  ENTER;
  *s = reinterpret_cast<CUstream>(d.queues.open(!(flags & CU_STREAM_NON_BLOCKING)));
  return CUDA_SUCCESS;
}

API cuStreamDestroy_v2(CUstream handle) {
  ENTER;
  Stream *s = stream(d, handle);
  if (!handle || !s) return CUDA_ERROR_INVALID_HANDLE;
  d.queues.close(s);
  return CUDA_SUCCESS;
}

API cuStreamSynchronize(CUstream handle) {
  ENTER;
  Stream *s = stream(d, handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  d.queues.finish(s);
  return d.broken;
}

// What is asked after again and again comes to pass.
API cuStreamQuery(CUstream handle) {
  ENTER;
  Stream *s = stream(d, handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (s->lane.empty()) return CUDA_SUCCESS;
  d.queues.nudge();
  return CUDA_ERROR_NOT_READY;
}

API cuStreamWaitEvent(CUstream handle, CUevent e, unsigned) {
  ENTER;
  Stream *s = stream(d, handle);
  if (!s || !e) return CUDA_ERROR_INVALID_HANDLE;
  Event *ev = event(e);
  if (ev->capture && !d.queues.captures(ev->capture)) return CUDA_ERROR_CAPTURED_EVENT;
  if (ev->capture && !s->capture) join(s, ev->capture);
  if (s->capture) {
    if (ev->capture != s->capture) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    into(s, {nullptr, nullptr, ev->last});
    return CUDA_SUCCESS;
  }
  if (ev->last) d.queues.submit(s, {nullptr, nullptr, ev->last});
  return CUDA_SUCCESS;
}

API cuEventCreate(CUevent *e, unsigned flags) {
  ENTER;
  *e = reinterpret_cast<CUevent>(new Event{!(flags & 2), nullptr, nullptr});
  return CUDA_SUCCESS;
}

API cuEventDestroy_v2(CUevent e) {
  ENTER;
  delete event(e);
  return CUDA_SUCCESS;
}

API cuEventRecord(CUevent e, CUstream handle) {
  ENTER;
  Stream *s = stream(d, handle);
  if (!s || !e) return CUDA_ERROR_INVALID_HANDLE;
  Event *ev = event(e);
  ev->last = std::make_shared<Mark>();
  ev->capture = s->capture;
  if (s->capture) into(s, {nullptr, ev->last, nullptr});
  else d.queues.submit(s, {nullptr, ev->last, nullptr});
  return CUDA_SUCCESS;
}

API cuEventSynchronize(CUevent e) {
  ENTER;
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  if (event(e)->capture) return CUDA_ERROR_CAPTURED_EVENT;
  d.queues.reach(event(e)->last);
  return d.broken;
}

API cuEventQuery(CUevent e) {
  ENTER;
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  if (event(e)->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (!event(e)->last || event(e)->last->reached) return CUDA_SUCCESS;
  d.queues.nudge();
  return CUDA_ERROR_NOT_READY;
}

API cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
  ENTER;
  Event *a = event(from), *b = event(to);
  if (!a || !b || !a->timed || !b->timed || !a->last || !b->last || a->capture || b->capture) return CUDA_ERROR_INVALID_HANDLE;
  if (!a->last->reached || !b->last->reached) return CUDA_ERROR_NOT_READY;
  *ms = (float)(b->last->at - a->last->at);
  return CUDA_SUCCESS;
}

API cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode) {
  ENTER;
  Stream *s = stream(d, handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  if (s == d.standard) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (s->capture || d.captures_open) return CUDA_ERROR_ILLEGAL_STATE;
  d.graphs.push_back(std::make_unique<Graph>());
  join(s, d.graphs.back().get());
  s->origin = true;
  d.captures_open++;
  d.capturing = std::this_thread::get_id();
  return CUDA_SUCCESS;
}

API cuStreamEndCapture(CUstream handle, CUgraph *g) {
  ENTER;
  Stream *s = stream(d, handle);
  if (!s || !s->capture || !s->origin) return CUDA_ERROR_ILLEGAL_STATE;
  if (d.capturing != std::this_thread::get_id()) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  Graph *graph = s->capture;
  d.queues.leave(graph);
  s->origin = false;
  d.captures_open--;
  *g = nullptr;
  if (!joined(*graph)) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *g = reinterpret_cast<CUgraph>(graph);
  return CUDA_SUCCESS;
}
