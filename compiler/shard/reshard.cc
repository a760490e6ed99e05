#include "compiler/shard/reshard.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using Kind = Collective::Kind;

// From this size on a sum takes two steps, in which each device first adds up one part. With more
// than two devices that is less traffic than if every device read everything, but it costs one more
// barrier.
constexpr int64_t kTwoStepBytesMin = 64 << 10;

size_t CommonLength(const std::vector<int>& a, const std::vector<int>& b) {
  const auto [end, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

}  // namespace

int64_t Resharder::Devices(const std::vector<int>& axes) const {
  return graph::Parts(mesh_, {axes}, 0);
}

const Node* Resharder::Number(const std::vector<int>& axes) {
  KILN_CHECK(!axes.empty());
  const Node* number = nullptr;
  for (const int axis : axes) {
    const int64_t devices = mesh_.axes[axis].size;
    const Node* size = builder_.ConstInt(DType::kInt64, devices);
    const Node* coordinate = builder_.Reshape(builder_.Slice(place_, 0, axis, axis + 1), {});
    // The coordinate is in this range anyway; the clamp proves that the slice is within bounds.
    coordinate = builder_.Binary(
        Op::kMin, builder_.Binary(Op::kMax, coordinate, builder_.ConstInt(DType::kInt64, 0)),
        builder_.ConstInt(DType::kInt64, devices - 1));
    number = number == nullptr ? coordinate : builder_.Add(builder_.Mul(number, size), coordinate);
  }
  return number;
}

const Node* Resharder::Cut(const Node* local, int64_t dim, const std::vector<int>& axes) {
  KILN_CHECK_EQ(local->shape()[dim] % Devices(axes), 0) << "dimension " << dim;
  const int64_t length = local->shape()[dim] / Devices(axes);
  ir::Shape along(local->shape().size(), 1);
  along[dim] = length;
  const Node* begin = builder_.Mul(Number(axes), builder_.ConstInt(DType::kInt64, length));
  const Node* index = builder_.Add(builder_.Iota(DType::kInt64, along, dim), begin);
  return builder_.GatherElements(local, index, dim);
}

const Node* Resharder::Add(Collective collective) {
  collective.devices = Devices(collective.group);
  std::vector<size_t>& of_operand = by_operand_[collective.operand];
  for (const size_t i : of_operand) {
    collective.result = collectives_[i].result;
    if (collective == collectives_[i]) return collective.result;
  }
  of_operand.push_back(collectives_.size());
  const auto index = first_result_ + static_cast<int64_t>(collectives_.size());
  collective.result = builder_.Input(index, collective.operand->dtype(), ResultShape(collective));
  collectives_.push_back(collective);
  KILN_VALIDATE(*this, collectives_.size());
  return collective.result;
}

void Resharder::Validate() const {
  size_t count = 0;
  for (const auto& [operand, numbers] : by_operand_) {
    count += numbers.size();
    for (const size_t number : numbers) {
      KILN_CHECK_LT(number, collectives_.size());
      KILN_CHECK(collectives_[number].operand == operand) << "collective " << number;
    }
  }
  KILN_CHECK_EQ(count, collectives_.size());
  for (size_t i = 0; i < collectives_.size(); ++i) {
    const Node* result = collectives_[i].result;
    KILN_CHECK_EQ(result->attr<ir::InputAttr>().index, first_result_ + static_cast<int64_t>(i));
    KILN_CHECK(result->shape() == ResultShape(collectives_[i])) << "collective " << i;
    KILN_CHECK_GE(collectives_[i].devices, 1) << "collective " << i;
  }
}

// Adds splits that only cut, by axes that split no other dimension.
bool Resharder::CutWhatIsFree(const Node** local, Spec& from, const Spec& to) {
  bool cut = false;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (CommonLength(from[dim], to[dim]) != from[dim].size()) continue;
    std::vector<int> axes;
    for (size_t i = from[dim].size(); i < to[dim].size() && !IsSplitBy(from, to[dim][i]); ++i) {
      axes.push_back(to[dim][i]);
    }
    if (axes.empty()) continue;
    *local = Cut(*local, static_cast<int64_t>(dim), axes);
    from[dim].insert(from[dim].end(), axes.begin(), axes.end());
    cut = true;
  }
  return cut;
}

// Moves a dimension's last axes to the end of another dimension's.
bool Resharder::Exchange(const Node** local, Spec& from, const Spec& to) {
  for (size_t a = 0; a < from.size(); ++a) {
    const size_t kept = CommonLength(from[a], to[a]);
    const std::vector<int> axes(from[a].begin() + static_cast<int64_t>(kept), from[a].end());
    if (axes.empty()) continue;
    for (size_t b = 0; b < from.size(); ++b) {
      std::vector<int> next = from[b];
      next.insert(next.end(), axes.begin(), axes.end());
      if (a == b || CommonLength(next, to[b]) != next.size()) continue;
      *local = Add({.kind = Kind::kAllToAll,
                    .group = axes,
                    .split = static_cast<int64_t>(b),
                    .joined = static_cast<int64_t>(a),
                    .operand = *local});
      from[a].resize(kept);
      from[b] = std::move(next);
      return true;
    }
  }
  return false;
}

bool Resharder::Gather(const Node** local, Spec& from, const Spec& to) {
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const size_t kept = CommonLength(from[dim], to[dim]);
    const std::vector<int> axes(from[dim].begin() + static_cast<int64_t>(kept), from[dim].end());
    if (axes.empty()) continue;
    *local = Add({.kind = Kind::kAllGather,
                  .group = axes,
                  .joined = static_cast<int64_t>(dim),
                  .operand = *local});
    from[dim].resize(kept);
    return true;
  }
  return false;
}

const Node* Resharder::Reshard(const Node* local, Spec from, const Spec& to) {
  // Each step brings `from` closer to `to`.
  while (CutWhatIsFree(&local, from, to) || Exchange(&local, from, to) ||
         Gather(&local, from, to)) {
  }
  KILN_CHECK(from == to) << "a value does not get its layout";
  return local;
}

const Node* Resharder::AllReduce(const Node* partial, Op combine, const std::vector<int>& axes) {
  const int64_t devices = Devices(axes);
  const int64_t elements = ir::NumElements(partial->shape());
  const int64_t bytes = elements * ir::SizeOf(partial->dtype());
  Collective collective{.combine = combine, .group = axes, .operand = partial};
  if (devices == 2 || bytes < kTwoStepBytesMin || elements % devices != 0) {
    return Add(std::move(collective));
  }
  collective.kind = Kind::kReduceScatter;
  collective.operand = builder_.Reshape(partial, {elements});
  const Node* part = Add(std::move(collective));
  const Node* all = Add({.kind = Kind::kAllGather, .group = axes, .operand = part});
  return builder_.Reshape(all, partial->shape());
}

const Node* Resharder::Finish(const Node* partial, Op combine, const Layout& layout) {
  const Node* result = partial;
  if (!layout.scatter_axes.empty()) {
    result = Add({.kind = Kind::kReduceScatter,
                  .combine = combine,
                  .group = layout.scatter_axes,
                  .split = layout.scatter_dim,
                  .operand = result});
  }
  std::vector<int> rest;
  for (const int axis : layout.partial) {
    const auto& done = layout.scatter_axes;
    if (std::find(done.begin(), done.end(), axis) == done.end()) rest.push_back(axis);
  }
  // Sorted, so that one set of devices always gives the same group.
  std::sort(rest.begin(), rest.end());
  return rest.empty() ? result : AllReduce(result, combine, rest);
}

}  // namespace kiln::shard
