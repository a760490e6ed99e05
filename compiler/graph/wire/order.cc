#include "compiler/graph/wire/order.h"

#include <algorithm>
#include <vector>

#include "compiler/graph/wire/label.h"
#include "compiler/ir/str_cat.h"

namespace kiln::graph {
namespace {

constexpr size_t kLongestPath = 8;

// Returns the shortest path of operands from node `from` to node `to`, including both; empty if
// there is none. Runs at most once, to build an error.
std::vector<int> FindPath(const v1::Graph& proto, int from, int to) {
  std::vector<int> user(proto.nodes_size(), -1);
  std::vector<int> queue = {from};
  for (size_t next = 0; next < queue.size(); ++next) {
    int node = queue[next];
    if (node == to) {
      std::vector<int> path = {to};
      while (path.back() != from) path.push_back(user[path.back()]);
      return {path.rbegin(), path.rend()};
    }
    for (uint32_t operand : proto.nodes(node).operands()) {
      // Operands of nodes that are not checked yet may be out of range.
      bool known =
          operand >= user.size() || user[operand] >= 0 || static_cast<int>(operand) == from;
      if (known) continue;
      user[operand] = node;
      queue.push_back(static_cast<int>(operand));
    }
  }
  return {};
}

std::string PathText(int start, const std::vector<int>& path) {
  std::string text = StrCat(start);
  for (size_t i = 0; i < std::min(path.size(), kLongestPath); ++i) {
    StrAppend(&text, " -> ", path[i]);
  }
  return path.size() > kLongestPath ? text + " -> ..." : text;
}

}  // namespace

absl::Status CheckOperandOrder(const v1::Graph& proto, int index) {
  const v1::Node& node = proto.nodes(index);
  for (int i = 0; i < node.operands_size(); ++i) {
    uint32_t operand = node.operands(i);
    if (operand >= static_cast<uint32_t>(proto.nodes_size())) {
      return NodeError(proto, index, "OPERAND_OUT_OF_RANGE",
                       StrCat("operand ", i, " is node ", operand, ", but the graph has ",
                              proto.nodes_size(), " nodes"));
    }
    if (static_cast<int>(operand) < index) continue;
    std::vector<int> cycle = FindPath(proto, static_cast<int>(operand), index);
    if (!cycle.empty()) {
      return NodeError(proto, index, "CYCLE",
                       StrCat("it depends on itself: ", PathText(index, cycle)));
    }
    return NodeError(proto, index, "ORDER",
                     StrCat("operand ", i, " is ", Label(proto, static_cast<int>(operand)),
                            ", which comes after it; every operand must come before its user"));
  }
  return absl::OkStatus();
}

}  // namespace kiln::graph
