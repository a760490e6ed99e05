#include "drivers/cuda/graph.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::drivers::cuda {

absl::StatusOr<std::unique_ptr<Graph>> Graph::Make(Context& context, absl::Span<const Call> calls,
                                                   const Places& places) {
  std::unique_ptr<Graph> graph(new Graph(context, calls));
  if (absl::Status status = graph->Build(places); !status.ok()) return status;
  return graph;
}

Graph::~Graph() {
  Context::Use use(context_);
  if (use.ok() && exec_ != nullptr) context_.cuda().GraphExecDestroy(exec_);
  // A graph belongs to no context, so it is destroyed even if the context is gone.
  if (graph_ != nullptr) context_.cuda().GraphDestroy(graph_);
}

void Graph::Validate() const {
  KILN_CHECK(graph_ != nullptr && exec_ != nullptr);
  KILN_CHECK_EQ(nodes_.size(), calls_.size());
  KILN_CHECK_EQ(calls_using_.size(), addresses_.size());
  for (size_t slot = 0; slot < calls_using_.size(); ++slot) {
    const std::vector<int>& users = calls_using_[slot];
    for (size_t i = 0; i < users.size(); ++i) {
      KILN_CHECK(users[i] >= 0 && static_cast<size_t>(users[i]) < calls_.size()) << users[i];
      KILN_CHECK(i == 0 || users[i - 1] < users[i]) << "slot " << slot;
      const auto& operands = calls_[users[i]].operands;
      KILN_CHECK(std::any_of(operands.begin(), operands.end(),
                             [slot](const RangeAccess& operand) {
                               return static_cast<size_t>(operand.range.slot) == slot;
                             }))
          << "call " << users[i] << " does not use slot " << slot;
    }
  }
}

absl::Status Graph::Build(const Places& places) {
  const Library& cuda = context_.cuda();
  CUresult code = cuda.GraphCreate(&graph_, 0);
  if (code != CUDA_SUCCESS) return context_.Failure("cannot make a graph", code);
  calls_using_.resize(places.addresses.size());
  std::vector<CUgraphNode> before;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    before.clear();
    for (const int dependency : call.dependencies) {
      KILN_CHECK(dependency >= 0 && static_cast<size_t>(dependency) < i) << dependency;
      before.push_back(nodes_[dependency]);
    }
    CUgraphNode node = nullptr;
    code = AddNode(context_, call, places, graph_, before, &node);
    if (code != CUDA_SUCCESS) return context_.Failure(call.WhatFailed(), code);
    nodes_.push_back(node);
    if (!call.HasAddresses()) continue;
    for (const RangeAccess& operand : call.operands) {
      KILN_CHECK_LT(operand.range.slot, calls_using_.size());
      std::vector<int>& users = calls_using_[operand.range.slot];
      if (users.empty() || users.back() != static_cast<int>(i))
        users.push_back(static_cast<int>(i));
    }
  }
  code = cuda.GraphInstantiateWithFlags(&exec_, graph_, 0);
  if (code != CUDA_SUCCESS) return context_.Failure("cannot instantiate a graph", code);
  addresses_.assign(places.addresses.begin(), places.addresses.end());
  // As much work as building it.
  KILN_VALIDATE(*this, 1);
  return absl::OkStatus();
}

absl::Status Graph::Update(const Places& places) {
  const absl::Span<char* const> addresses = places.addresses;
  KILN_CHECK_EQ(addresses.size(), addresses_.size());
  std::vector<int> changed;
  for (size_t slot = 0; slot < addresses.size(); ++slot) {
    if (addresses[slot] == addresses_[slot]) continue;
    changed.insert(changed.end(), calls_using_[slot].begin(), calls_using_[slot].end());
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (const int call : changed) {
    const CUresult code = SetNode(context_, calls_[call], places, exec_, nodes_[call]);
    if (code == CUDA_SUCCESS) continue;
    // Some nodes already have the new addresses, so the next launch sets all of them.
    std::fill(addresses_.begin(), addresses_.end(), nullptr);
    return context_.Failure(calls_[call].WhatFailed(), code);
  }
  addresses_.assign(addresses.begin(), addresses.end());
  return absl::OkStatus();
}

absl::Status Graph::Launch(const Places& places) {
  if (absl::Status status = Update(places); !status.ok()) return status;
  const CUresult code = context_.cuda().GraphLaunch(exec_, context_.list_stream());
  if (code != CUDA_SUCCESS) return context_.Failure("cannot launch a graph", code);
  return absl::OkStatus();
}

}  // namespace kiln::drivers::cuda
