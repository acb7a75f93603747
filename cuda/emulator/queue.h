// queue.h: streams, events and graphs. Work is queued and done as late as the program
// lets it, or at once, or in an order by chance: each is what a GPU may do, and what
// depends on which is a fault of the program.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace emulator {

// A Mark is one recording of an event.
struct Mark {
  bool reached = false;
  double at = 0;  // in milliseconds
};

// An Item is work, or a mark to set, or one to wait for.
struct Item {
  std::function<void()> work;
  std::shared_ptr<Mark> set, wait;
};

using Lane = std::deque<Item>;

// A Policy is which of the lanes that can go on does.
struct Policy {
  enum When { late, eager, random } when = late;
  std::mt19937_64 chance;
  bool parse(const char *text);  // "late", "eager", "rand:7"; null: late
};

// able says whether a lane's first item can be done, advance does it.
bool able(const Lane &lane);
void advance(Lane &lane);

// A Node is work that a program put into a graph by itself, behind others.
struct Node {
  std::function<void()> work;
  std::vector<const Node *> after;
};

// A Graph is lanes that a capture filled, and nodes, whose handles are their addresses.
struct Graph {
  std::vector<Lane> lanes;
  std::vector<std::shared_ptr<Node>> nodes;
  // run does all of it, with marks of its own.
  void run(Policy &p) const;
};

struct Stream {
  bool blocking;            // it minds the default stream
  Lane lane;
  Graph *capture = nullptr;  // what is captured into, and which of its lanes
  size_t captured = 0;
  bool origin = false;
};

struct Event {
  bool timed;
  std::shared_ptr<Mark> last;
  Graph *capture = nullptr;  // in which it was recorded last
};

// Queues are all streams of the device.
class Queues {
 public:
  Policy policy;

  Stream *open(bool blocking);
  void close(Stream *s);
  void leave(const Graph *g);  // all streams that are captured into it end that
  bool captures(const Graph *g) const;
  bool known(const Stream *s) const;

  void submit(Stream *s, Item item);
  // finish does what must be done before a stream, or all, or a mark, are through.
  void finish(Stream *s);
  void finish_all();
  void finish_blocking();
  void reach(const std::shared_ptr<Mark> &m);
  // nudge does one thing, if there is any.
  void nudge();

 private:
  std::vector<std::unique_ptr<Stream>> streams_;
  void until(const std::function<bool()> &done, Stream *wanted);
  Stream *holder(const Mark *m);
};

}  // namespace emulator
