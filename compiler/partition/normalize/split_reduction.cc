#include "compiler/partition/normalize/split_reduction.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/partition/contraction.h"
#include "compiler/partition/limits.h"
#include "compiler/partition/reads.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;

namespace {

// For a machine that runs few tasks: maximum number of results of the first reduction, and minimum
// number of elements in each.
constexpr int64_t kPartsMax = 1024;
constexpr int64_t kPartMin = 64;

// Threads of a block, and elements of a contraction's result in their tile. A result that is
// smaller, or has fewer rows or columns, is not tiled.
constexpr int64_t kBlockThreads = 256;
constexpr int64_t kTilePlaces = 64 * 64;
constexpr int64_t kTilePlacesMin = 32 * 32;
constexpr double kTileSideMin = 16;
// Minimum number of terms of a part: of a sum that a block's threads share, and of a tile's. With
// fewer terms, storing the partial results and reading them again takes longer.
constexpr int64_t kSharedPartMin = 4 * kBlockThreads;
constexpr int64_t kTilePartMin = 256;

// The range of numbers of parts into which the sums may be cut.
struct Parts {
  int64_t min = 0;
  int64_t max = 0;
};

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

const std::vector<int64_t>& ReducedAxes(const Node* node) {
  return node->attr<ir::IntsAttr>().values;
}

// Returns whether adjacent terms of the sum are adjacent in memory, by the operand's shape.
bool RunsAlongMemory(const Node* node) {
  const ir::Shape& shape = node->operand(0)->shape();
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] > 1)
      return absl::c_linear_search(ReducedAxes(node), static_cast<int64_t>(axis));
  }
  return false;
}

// Returns parts that are enough for `wanted` blocks or threads, if there are only `there` without a
// cut; up to twice as many parts are allowed, if that divides an axis. Nothing if the sums are too
// short to gain.
std::optional<Parts> PartsFor(int64_t wanted, int64_t there, int64_t terms, int64_t terms_min) {
  if (terms < 4 * terms_min) return std::nullopt;
  const int64_t enough = std::max<int64_t>(2, DivideUp(wanted, there));
  const int64_t parts_max = std::min(2 * enough, terms / terms_min);
  return Parts{std::min(enough, parts_max / 2), parts_max};
}

// For blocks of threads: a block computes a tile of a contraction, one sum along memory, or one sum
// per thread.
std::optional<Parts> PartsForBlocks(const Node* node, int64_t results, int64_t terms,
                                    const drivers::Limits& limits) {
  const int64_t enough = EnoughPoints(limits);
  const int64_t threads = int64_t{limits.compute_units} * limits.threads_per_unit;
  if (results >= kTilePlacesMin && IsContraction(node) && TileSide(node) >= kTileSideMin) {
    const int64_t tiles = DivideUp(results, kTilePlaces);
    if (tiles >= enough) return std::nullopt;
    return PartsFor(enough, tiles, terms, kTilePartMin);
  }
  if (IsContraction(node) || RunsAlongMemory(node)) {
    if (IsSharedOut(results * terms, results, limits)) return std::nullopt;
    return PartsFor(std::max(enough, threads / kBlockThreads), results, terms, kSharedPartMin);
  }
  if (IsSharedOut(results * terms, DivideUp(results, kBlockThreads), limits)) return std::nullopt;
  return PartsFor(std::max(enough * kBlockThreads, threads), results, terms, kPartMin);
}

std::optional<Parts> FindParts(const Node* node, const drivers::Limits& limits) {
  const int64_t results = ir::NumElements(node->shape());
  const int64_t elements = ir::NumElements(node->operand(0)->shape());
  if (elements <= kSmallWork) return std::nullopt;
  const int64_t terms = elements / results;
  if (IsWide(limits)) return PartsForBlocks(node, results, terms, limits);
  if (IsSharedOut(elements, results, limits)) return std::nullopt;
  return Parts{EnoughPoints(limits), std::min(kPartsMax, terms / kPartMin)};
}

// Returns the number of parts into which an axis of this size is cut evenly; 0 if there is none in
// the wanted range.
int64_t PartsOf(int64_t size, const Parts& wanted) {
  for (int64_t parts = std::min(size, wanted.max); parts >= wanted.min; --parts) {
    if (size % parts == 0) return parts;
  }
  return 0;
}

// The number of parts per dimension of the operand; 1: not cut.
using Cuts = std::vector<int64_t>;

// The leading axis first, so that the first reduction gets the contiguous elements.
std::vector<int64_t> AxesInOrder(const Node* node) {
  std::vector<int64_t> axes = ReducedAxes(node);
  absl::c_sort(axes);
  return axes;
}

// Cuts one axis into even parts; nothing if that is not possible.
std::optional<Cuts> CutOneAxis(const Node* node, const Parts& wanted) {
  const ir::Shape& shape = node->operand(0)->shape();
  for (const int64_t axis : AxesInOrder(node)) {
    const int64_t parts = PartsOf(shape[axis], wanted);
    if (parts == 0) continue;
    Cuts cuts(shape.size(), 1);
    cuts[axis] = parts;
    return cuts;
  }
  return std::nullopt;
}

// Cuts short axes into single elements, and a longer one into the parts still needed, possibly
// unevenly.
std::optional<Cuts> CutSeveralAxes(const Node* node, Parts wanted) {
  const ir::Shape& shape = node->operand(0)->shape();
  Cuts cuts(shape.size(), 1);
  for (const int64_t axis : AxesInOrder(node)) {
    if (wanted.min < 2) break;
    const int64_t even = PartsOf(shape[axis], wanted);
    if (even > 0) {
      cuts[axis] = even;
    } else if (shape[axis] <= wanted.min) {
      cuts[axis] = shape[axis];
    } else if (node->op() == ir::Op::kReduceSum) {
      cuts[axis] = wanted.min;
    }
    wanted = {DivideUp(wanted.min, cuts[axis]), wanted.max / cuts[axis]};
  }
  const bool cut = absl::c_any_of(cuts, [](int64_t parts) { return parts > 1; });
  return cut ? std::optional(std::move(cuts)) : std::nullopt;
}

// Pads `x` with zeros at the ends of axes, so that all cuts are even.
const Node* Padded(TensorMaker& make, const Node* x, const Cuts& cuts) {
  std::vector<int64_t> padding;
  for (size_t i = 0; i < cuts.size(); ++i) {
    padding.push_back(0);
    padding.push_back(DivideUp(x->shape()[i], cuts[i]) * cuts[i] - x->shape()[i]);
  }
  return make.Pad(x, padding);
}

const Node* CutReduction(ir::Context& context, const Node* node, const Cuts& cuts) {
  TensorMaker make(context);
  const Node* x = Padded(make, node->operand(0), cuts);
  ir::Shape shape, joined = node->shape();
  std::vector<int64_t> inner, outer;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (cuts[i] > 1) {
      shape.push_back(cuts[i]);
      joined[i] = cuts[i];
      outer.push_back(axis);
    }
    if (absl::c_linear_search(ReducedAxes(node), axis))
      inner.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(x->shape()[i] / cuts[i]);
  }
  const Node* first = make.Reduce(node->op(), make.Reshape(x, std::move(shape)), inner);
  return make.Reduce(node->op(), make.Reshape(first, std::move(joined)), outer);
}

}  // namespace

const Node* SplitReduction(ir::Context& context, const Node* node, const drivers::Limits& limits) {
  if (!IsReduction(node)) return node;
  const std::optional<Parts> wanted = FindParts(node, limits);
  if (!wanted) return node;
  std::optional<Cuts> cuts = CutOneAxis(node, *wanted);
  if (!cuts && IsWide(limits)) cuts = CutSeveralAxes(node, *wanted);
  if (!cuts) return node;
  // If there are many parts, adding them may need a split, too.
  return SplitReduction(context, CutReduction(context, node, *cuts), limits);
}

}  // namespace kiln::partition
