#include "compiler/graph/round_factors.h"

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/varying_axes.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/tf32.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"

namespace kiln::graph {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// Bound on the products of one sum.
constexpr int kProductsMax = 32;
// Bound on the nodes of one factor that are examined to see whether it is exact.
constexpr int kExactNodesMax = 32;

bool IsView(const Node* node) { return node->op() >= Op::kReshape && node->op() <= Op::kUnwindow; }

bool IsExactAfterCast(DType from) {
  return ir::IsShortFloat(from) || (!ir::IsFloat(from) && ir::SizeOf(from) == 1);
}

// Returns whether tf32 holds all elements of a float32 exactly.
bool IsExact(const Node* node, int* budget) {
  if (--*budget < 0) return false;
  switch (node->op()) {
    case Op::kConst: {
      const auto value = static_cast<float>(node->attr<ir::ConstValue>().AsDouble());
      return (std::bit_cast<uint32_t>(value) & ~ir::kTf32Mask) == 0;
    }
    case Op::kCast:
      return IsExactAfterCast(node->operand(0)->dtype());
    case Op::kBitcast:
      return ir::IsRoundedToTf32(node);
    case Op::kWhere:
      return IsExact(node->operand(1), budget) && IsExact(node->operand(2), budget);
    case Op::kMax:
    case Op::kMin:
      return IsExact(node->operand(0), budget) && IsExact(node->operand(1), budget);
    case Op::kNeg:
    case Op::kContiguous:
    case Op::kShard:
    case Op::kSend:
    case Op::kGatherElements:
    case Op::kReduceMax:
      return IsExact(node->operand(0), budget);
    default:
      return IsView(node) && IsExact(node->operand(0), budget);
  }
}

class Rounder {
 public:
  explicit Rounder(ir::Context& context) : builder_(context) {}

  // Returns the sum with the factors of its contractions rounded.
  const Node* RoundSum(const Node* sum) {
    const Node* products = sum->operand(0);
    if (ir::NumElements(products->shape()) == 0) return sum;
    std::vector<bool> summed(products->shape().size(), false);
    for (const int64_t axis : ir::IntsOf(sum)) summed[axis] = true;
    int budget = kProductsMax;
    return builder_.context().WithOperands(sum, {RoundProducts(products, summed, &budget)});
  }

 private:
  const Node* RoundProducts(const Node* value, const std::vector<bool>& summed, int* budget) {
    if (value->op() == Op::kAdd && *budget > 1) {
      --*budget;
      const Node* left = RoundProducts(value->operand(0), summed, budget);
      const Node* right = RoundProducts(value->operand(1), summed, budget);
      return builder_.context().WithOperands(value, {left, right});
    }
    if (value->op() != Op::kMul || !IsContracted(value, summed)) return value;
    return builder_.context().WithOperands(
        value, {Rounded(value->operand(0)), Rounded(value->operand(1))});
  }

  bool IsContracted(const Node* product, const std::vector<bool>& summed) {
    const std::vector<bool> left = axes_.Of(product->operand(0));
    const std::vector<bool> right = axes_.Of(product->operand(1));
    bool terms = false, rows = false, columns = false;
    for (size_t i = 0; i < summed.size(); ++i) {
      terms = terms || (summed[i] && left[i] && right[i]);
      rows = rows || (!summed[i] && left[i] && !right[i]);
      columns = columns || (!summed[i] && !left[i] && right[i]);
    }
    return terms && rows && columns;
  }

  const Node* Rounded(const Node* factor) {
    // Rounds below the views, so that each element is rounded once however often a view repeats it.
    // Zeros that views insert stay zero.
    std::vector<const Node*> views;
    while (IsView(factor) &&
           ir::NumElements(factor->operand(0)->shape()) <= ir::NumElements(factor->shape())) {
      views.push_back(factor);
      factor = factor->operand(0);
    }
    int budget = kExactNodesMax;
    if (!IsExact(factor, &budget)) factor = RoundElements(factor);
    for (size_t i = views.size(); i-- > 0;) {
      factor = builder_.context().WithOperands(views[i], {factor});
    }
    return factor;
  }

  const Node* RoundElements(const Node* x) {
    constexpr uint32_t kHalf = 1u << (ir::kTf32DroppedBits - 1);
    const Node* bits = builder_.Bitcast(x, DType::kUInt32);
    const Node* last_kept = builder_.Binary(
        Op::kAnd, builder_.Binary(Op::kShr, bits, Bits(ir::kTf32DroppedBits)), Bits(1));
    // Adds just under half of the last kept bit, and exactly half if that bit is odd. A carry into
    // the exponent gives the right result, up to infinity.
    const Node* sum = builder_.Add(bits, builder_.Add(last_kept, Bits(kHalf - 1)));
    // The addition could carry a NaN into the sign, or clear all bits that make it a NaN.
    const Node* kept = builder_.Where(builder_.Binary(Op::kCmpNe, x, x), Bits(0x7fc00000), sum);
    return builder_.Bitcast(builder_.Binary(Op::kAnd, kept, Bits(ir::kTf32Mask)), DType::kFloat32);
  }

  const Node* Bits(uint32_t value) { return builder_.ConstInt(DType::kUInt32, value); }

  ops::Builder builder_;
  VaryingAxes axes_;
};

}  // namespace

Graph RoundFactors(const Graph& graph) {
  if (graph.float32_matmul_precision == MatmulPrecision::kHighest) return graph;
  Rounder rounder(*graph.context);
  std::vector<const Node*> roots = Roots(graph);
  absl::flat_hash_map<const Node*, const Node*> became;
  for (const Node* node : ir::TopologicalOrder(roots)) {
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(became.at(operand));
    const Node* made = graph.context->WithOperands(node, std::move(operands));
    const bool sums = node->op() == Op::kReduceSum && node->dtype() == DType::kFloat32;
    became[node] = sums ? rounder.RoundSum(made) : made;
  }
  for (const Node*& root : roots) root = became.at(root);
  Graph result = WithRoots(graph, roots);
  result.float32_matmul_precision = MatmulPrecision::kHighest;
  for (const auto& [node, source] : graph.sources) {
    // The sources may contain nodes that no result needs.
    const auto found = became.find(node);
    if (found != became.end()) result.sources.try_emplace(found->second, source);
  }
  return result;
}

}  // namespace kiln::graph
