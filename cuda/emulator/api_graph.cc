// Calls about graphs: those that were captured, and those that a program makes of nodes.
#include <algorithm>
#include <map>

#include "api.h"

using namespace emulator;

namespace {

using Copies = std::map<const Node *, Node *>;  // by what they are copies of

// copied is a graph with nodes of its own.
Graph copied(const Graph &g, Copies &copies) {
  Graph own;
  own.lanes = g.lanes;
  for (auto &node : g.nodes) {
    auto copy = std::make_shared<Node>(*node);
    for (auto &other : copy->after) other = copies.at(other);
    copies[node.get()] = copy.get();
    own.nodes.push_back(std::move(copy));
  }
  return own;
}

// An Executable is a copy of a graph, that has the nodes' work as it was set last.
struct Executable {
  Copies copies;
  Graph graph;
};

Graph *known(Device &d, CUgraph g) {
  for (auto &p : d.graphs)
    if (p.get() == reinterpret_cast<Graph *>(g)) return p.get();
  return nullptr;
}

// stands says whether a graph that is there has this node.
bool stands(const Device &d, const Node *n) {
  return std::any_of(d.graphs.begin(), d.graphs.end(), [&](auto &g) {
    return std::any_of(g->nodes.begin(), g->nodes.end(), [&](auto &p) { return p.get() == n; });
  });
}

}  // namespace

API cuGraphCreate(CUgraph *g, unsigned flags) {
  ENTER;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  d.graphs.push_back(std::make_unique<Graph>());
  *g = reinterpret_cast<CUgraph>(d.graphs.back().get());
  return CUDA_SUCCESS;
}

API cuGraphAddKernelNode_v2(CUgraphNode *to, CUgraph handle, const CUgraphNode *after, size_t n, const CUDA_KERNEL_NODE_PARAMS *p) {
  ENTER;
  Graph *g = known(d, handle);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  auto node = std::make_shared<Node>();
  for (size_t i = 0; i < n; i++) {
    node->after.push_back(reinterpret_cast<Node *>(after[i]));
    if (!stands(d, node->after.back())) return CUDA_ERROR_INVALID_VALUE;
  }
  if (CUresult code = launching(d, *p, node->work)) return code;
  *to = reinterpret_cast<CUgraphNode>(node.get());
  g->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

// A graph that was instantiated is a copy.
API cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph handle, unsigned long long) {
  ENTER;
  Graph *g = known(d, handle);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_unique<Executable>();
  exec->graph = copied(*g, exec->copies);
  *e = reinterpret_cast<CUgraphExec>(exec.release());
  return CUDA_SUCCESS;
}

// What was launched before keeps what it was launched with, and the graph's own node
// what it was made with.
API cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *p) {
  ENTER;
  auto *exec = reinterpret_cast<Executable *>(e);
  auto *node = reinterpret_cast<Node *>(handle);
  if (!exec || !stands(d, node) || !exec->copies.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  return launching(d, *p, exec->copies.at(node)->work);
}

API cuGraphDestroy(CUgraph g) {
  ENTER;
  auto same = [&](auto &p) { return p.get() == reinterpret_cast<Graph *>(g); };
  return std::erase_if(d.graphs, same) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuGraphLaunch(CUgraphExec e, CUstream s) {
  ENTER;
  if (!e) return CUDA_ERROR_INVALID_VALUE;
  Copies copies;
  Graph now = copied(reinterpret_cast<Executable *>(e)->graph, copies);
  return put(d, s, [&d, now] { now.run(d.queues.policy); });
}

API cuGraphExecDestroy(CUgraphExec e) {
  ENTER;
  delete reinterpret_cast<Executable *>(e);
  return CUDA_SUCCESS;
}
