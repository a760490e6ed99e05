#include "compiler/search/contraction/contraction.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "absl/algorithm/container.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::search {
namespace {

using ir::Node;
using ir::Op;
using kernel::Sum;
using schedule::StageOperand;

// Returns the stage's only reduction if it is a sum, or null.
const Node* OnlySum(const kernel::Stage& stage) {
  const Node* sum = nullptr;
  for (const kernel::Store& store : stage.stores) {
    const Node* value = store.value;
    for (const Node* node : ir::TopologicalOrder({&value, 1})) {
      if (node->op() != Op::kReduce || node == sum) continue;
      if (sum != nullptr || node->attr<ir::ReduceAttr>().kind != ir::ReduceKind::kSum) {
        return nullptr;
      }
      sum = node;
    }
  }
  return sum;
}

// Returns the coefficients if `factor` depends on the ranges a and b only by ca * a + cb * b, or
// {0, 0}.
std::pair<int64_t, int64_t> JointCoefficients(const std::vector<Sum>& sums, const Node* a,
                                              const Node* b) {
  int64_t ca = 0, cb = 0;
  for (const Sum& sum : sums) {
    const int64_t x = sum.Coefficient(a), y = sum.Coefficient(b);
    if (x == 0 && y == 0) continue;
    // Multiples of one sum become equal without their common factor and with a positive sign.
    const int64_t divisor = std::gcd(x, y);
    if (x == 0 || y == 0) return {0, 0};
    const int64_t sign = x < 0 ? -1 : 1;
    if (ca == 0) {
      ca = sign * x / divisor;
      cb = sign * y / divisor;
    } else if (ca != sign * x / divisor || cb != sign * y / divisor) {
      return {0, 0};
    }
  }
  return {ca, cb};
}

}  // namespace

std::optional<Contraction> FindContraction(const kernel::Stage& stage, const ScheduleWriter& writer,
                                           const std::vector<int>& parallel,
                                           const std::vector<int>& reduce) {
  const Node* sum = OnlySum(stage);
  if (sum == nullptr || sum->operand(0)->op() != Op::kMul) return std::nullopt;
  Contraction result;
  for (int i = 0; i < 2; ++i) result.factor[i] = sum->operand(0)->operand(i);
  for (int axis : parallel) {
    const bool first = kernel::DependsOn(result.factor[0], writer[axis].range);
    const bool second = kernel::DependsOn(result.factor[1], writer[axis].range);
    if (first == second) {
      result.batch.push_back(axis);
    } else {
      result.only[first ? 0 : 1].push_back(axis);
    }
  }
  for (int axis : reduce) {
    for (const Node* factor : result.factor) {
      if (!kernel::DependsOn(factor, writer[axis].range)) return std::nullopt;
    }
  }
  result.reduce = reduce;
  return result;
}

bool HasPlainIndex(const Node* factor) {
  if (factor->op() != Op::kLoad) return false;
  const Sum sum = kernel::SumOf(factor->operand(0));
  return std::all_of(sum.terms.begin(), sum.terms.end(),
                     [](const auto& term) { return term.atom->op() == Op::kRange; });
}

bool IsPlainLoad(const Node* factor) {
  return HasPlainIndex(factor) && factor->operands().size() == 1;
}

bool IsWidenedLoad(const Node* factor) {
  const bool widens = factor->op() == Op::kCast && ir::IsShortFloat(factor->operand(0)->dtype());
  return IsPlainLoad(widens ? factor->operand(0) : factor);
}

int64_t StepOf(const Node* factor, const Node* range) {
  int64_t step = 0;
  for (const Node* node : ir::TopologicalOrder({&factor, 1})) {
    if (node->op() != Op::kLoad) continue;
    const Sum sum = kernel::SumOf(node->operand(0));
    int64_t here = sum.Coefficient(range);
    for (const auto& [atom, coefficient] : sum.terms) {
      // A range inside a quotient or a loaded index has no fixed step.
      if (atom != range && kernel::DependsOn(atom, range)) here = INT32_MAX;
    }
    step = std::max(step, std::abs(here));
  }
  return step;
}

std::vector<StageOperand::Dimension> StagedLayout(const Node* factor, const ScheduleWriter& writer,
                                                  const std::vector<int>& axes,
                                                  const Contraction& contraction,
                                                  const std::vector<int>& apart) {
  std::vector<Sum> sums;
  kernel::CollectSums(factor, &sums);
  std::vector<StageOperand::Dimension> layout;
  std::vector<int> joined;
  for (int axis : axes) {
    if (absl::c_linear_search(joined, axis)) continue;
    if (!kernel::DependsOn(factor, writer[axis].range)) continue;
    StageOperand::Dimension dimension = {{1, axis}};
    for (int other : axes) {
      const bool pair = absl::c_linear_search(contraction.reduce, axis) !=
                        absl::c_linear_search(contraction.reduce, other);
      if (!pair || absl::c_linear_search(joined, other)) continue;
      if (absl::c_linear_search(apart, axis) || absl::c_linear_search(apart, other)) continue;
      const auto [ca, cb] = JointCoefficients(sums, writer[axis].range, writer[other].range);
      // OperandPacker::FixDimension solves for the axis whose coefficient is 1.
      if (ca == 0 || (std::abs(ca) != 1 && std::abs(cb) != 1)) continue;
      const int64_t size =
          std::abs(ca) * (writer.extent(axis) - 1) + std::abs(cb) * (writer.extent(other) - 1) + 1;
      // Joining pays off only where different pairs share a position, as overlapping windows do.
      if (size >= writer.extent(axis) * writer.extent(other)) continue;
      dimension = {{ca, axis}, {cb, other}};
      joined.push_back(other);
      break;
    }
    layout.push_back(std::move(dimension));
  }
  return layout;
}

}  // namespace kiln::search
