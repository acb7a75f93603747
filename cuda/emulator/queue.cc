#include "queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <string>

namespace emulator {

bool Policy::parse(const char *text) {
  std::string t = text ? text : "late";
  when = t == "eager" ? eager : t.starts_with("rand:") ? random : late;
  if (when == random) chance.seed(strtoull(t.c_str() + 5, nullptr, 10));
  return when != late || t == "late";
}

bool able(const Lane &lane) { return !lane.empty() && (!lane.front().wait || lane.front().wait->reached); }

void advance(Lane &lane) {
  Item item = std::move(lane.front());
  lane.pop_front();
  if (item.work) item.work();
  if (item.set) {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    item.set->at = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    item.set->reached = true;
  }
}

// Of lanes that can go on, the last one does, or any: a program must not rely on the
// order in which it filled them.
void Graph::run(Policy &p) const {
  std::vector<Lane> all = lanes;
  std::map<const Node *, std::shared_ptr<Mark>> done;
  for (auto &node : nodes) {
    auto &lane = all.emplace_back();
    for (auto *other : node->after) lane.push_back({nullptr, nullptr, done.at(other)});
    lane.push_back({node->work, done[node.get()] = std::make_shared<Mark>(), nullptr});
  }
  std::map<Mark *, std::shared_ptr<Mark>> own;
  auto renew = [&](std::shared_ptr<Mark> &m) {
    if (!m) return;
    auto &mine = own[m.get()];
    if (!mine) mine = std::make_shared<Mark>();
    m = mine;
  };
  for (auto &lane : all)
    for (auto &item : lane) renew(item.set), renew(item.wait);
  for (;;) {
    std::vector<Lane *> ready;
    for (auto &lane : all)
      if (able(lane)) ready.push_back(&lane);
    if (ready.empty()) return;
    size_t which = p.when == Policy::random ? p.chance() % ready.size() : p.when == Policy::eager ? 0 : ready.size() - 1;
    advance(*ready[which]);
  }
}

Stream *Queues::open(bool blocking) {
  streams_.push_back(std::make_unique<Stream>());
  streams_.back()->blocking = blocking;
  return streams_.back().get();
}

void Queues::close(Stream *s) {
  finish(s);
  std::erase_if(streams_, [&](auto &p) { return p.get() == s; });
}

void Queues::leave(const Graph *g) {
  for (auto &s : streams_)
    if (s->capture == g) s->capture = nullptr;
}

bool Queues::captures(const Graph *g) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](auto &s) { return g && s->capture == g; });
}

bool Queues::known(const Stream *s) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](auto &p) { return p.get() == s; });
}

void Queues::submit(Stream *s, Item item) {
  s->lane.push_back(std::move(item));
  if (policy.when == Policy::eager) finish_all();
  if (policy.when == Policy::random)
    for (auto n = policy.chance() % 3; n; n--) nudge();
}

// holder is the stream that will set a mark.
Stream *Queues::holder(const Mark *m) {
  for (auto &s : streams_)
    for (auto &item : s->lane)
      if (item.set.get() == m) return s.get();
  return nullptr;
}

// until does things until that is done: late, those only that the wanted stream needs.
void Queues::until(const std::function<bool()> &done, Stream *wanted) {
  while (!done()) {
    if (policy.when == Policy::random) {
      nudge();
      continue;
    }
    Stream *s = wanted;
    while (!able(s->lane)) s = holder(s->lane.front().wait.get());
    advance(s->lane);
  }
}

void Queues::finish(Stream *s) {
  until([&] { return s->lane.empty(); }, s);
}

void Queues::finish_all() {
  for (auto &s : streams_) finish(s.get());
}

void Queues::finish_blocking() {
  for (auto &s : streams_)
    if (s->blocking) finish(s.get());
}

void Queues::reach(const std::shared_ptr<Mark> &m) {
  if (!m || m->reached) return;
  Stream *s = holder(m.get());
  if (s) until([&] { return m->reached; }, s);
}

void Queues::nudge() {
  std::vector<Stream *> ready;
  for (auto &s : streams_)
    if (able(s->lane)) ready.push_back(s.get());
  if (!ready.empty()) advance(ready[policy.chance() % ready.size()]->lane);
}

}  // namespace emulator
