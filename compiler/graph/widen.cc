#include "compiler/graph/widen.h"

#include <algorithm>
#include <utility>

#include "compiler/graph/rewrite_graph.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/walk.h"

namespace kiln::graph {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

const Node* CastTo(ir::Context& context, const Node* node, DType dtype) {
  if (node->dtype() == dtype) return node;
  return context.Get(Op::kCast, dtype, node->shape(), {node});
}

// Returns whether a scatter only moves values.
bool IsMove(const Node* node) {
  return node->op() == Op::kScatterElements &&
         node->attr<ir::ScatterAttr>().mode == ir::ScatterMode::kSet;
}

// Returns the same op on float32; a comparison's result stays bool.
const Node* InFloat32(ir::Context& context, const Node* node) {
  if (IsMove(node)) return nullptr;
  std::vector<const Node*> operands;
  bool is_short = ir::IsShortFloat(node->dtype());
  for (const Node* operand : node->operands()) {
    const bool widens = ir::IsShortFloat(operand->dtype());
    is_short = is_short || widens;
    operands.push_back(widens ? CastTo(context, operand, DType::kFloat32) : operand);
  }
  // Ops on wider floats, and comparisons of them, are kept.
  if (!is_short) return nullptr;
  const DType dtype = ir::IsShortFloat(node->dtype()) ? DType::kFloat32 : node->dtype();
  const Node* wide =
      context.Get(node->op(), dtype, node->shape(), std::move(operands), node->attribute());
  // The rounding is a node of the graph, so a fused kernel also does it.
  return CastTo(context, wide, node->dtype());
}

// Counts beyond float32's exact integers are cast from int64, which rounds once.
const Node* CountWide(ir::Context& context, const Node* node) {
  if (!ir::IsShortFloat(node->dtype())) return nullptr;
  const int64_t extent = node->shape()[node->attr<ir::IntAttr>().value];
  const DType dtype = extent <= (int64_t{1} << 24) ? DType::kFloat32 : DType::kInt64;
  const Node* wide = context.Get(Op::kIota, dtype, node->shape(), {}, node->attribute());
  return CastTo(context, wide, node->dtype());
}

const std::vector<ir::Rule>& Rules() {
  static const auto& rules = *new std::vector<ir::Rule>{
      {"in_float32",
       {Op::kNeg,       Op::kReciprocal,
        Op::kSqrt,      Op::kExp2,
        Op::kLog2,      Op::kSin,
        Op::kTrunc,     Op::kAdd,
        Op::kSub,       Op::kMul,
        Op::kDiv,       Op::kMod,
        Op::kMax,       Op::kMin,
        Op::kPow,       Op::kCmpLt,
        Op::kCmpEq,     Op::kCmpNe,
        Op::kReduceSum, Op::kReduceProd,
        Op::kReduceMax, Op::kScatterElements},
       InFloat32},
      {"count_wide", {Op::kIota}, CountWide},
  };
  return rules;
}

}  // namespace

Graph Widen(const Graph& graph) {
  const std::vector<const Node*> nodes = ir::TopologicalOrder(Roots(graph));
  const bool has_short = std::any_of(
      nodes.begin(), nodes.end(), [](const Node* node) { return ir::IsShortFloat(node->dtype()); });
  return has_short ? RewriteGraph(graph, Rules()) : graph;
}

}  // namespace kiln::graph
