#include "compiler/partition/digits.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "compiler/ir/reshape_groups.h"
#include "proto/check/check.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

int64_t ExtentOf(const Digits& digits) {
  int64_t extent = 1;
  for (const Digit& digit : digits) extent *= digit.extent;
  return extent;
}

Digits Normalized(Digits digits) {
  Digits result;
  for (const Digit& digit : digits) {
    if (digit.extent == 1) continue;
    if (!result.empty()) {
      Digit& high = result.back();
      // This digit ends where the next higher one begins.
      if (high.loop == digit.loop && high.stride == digit.stride * digit.extent) {
        high = {digit.loop, digit.stride, high.extent * digit.extent};
        continue;
      }
    }
    result.push_back(digit);
  }
  return result;
}

namespace {

// Removes the least significant part of `extent` from the end. Returns false if that cuts through a
// digit.
bool TakeLow(Digits* digits, int64_t extent, Digits* part) {
  while (extent > 1) {
    if (digits->empty()) return false;
    Digit digit = digits->back();
    digits->pop_back();
    // Either the whole digit belongs to the part, or only its low end does and the rest stays.
    if (extent % digit.extent == 0) {
      extent /= digit.extent;
      part->insert(part->begin(), digit);
      continue;
    }
    if (digit.extent % extent != 0) return false;
    part->insert(part->begin(), {digit.loop, digit.stride, extent});
    digits->push_back({digit.loop, digit.stride * extent, digit.extent / extent});
    extent = 1;
  }
  return true;
}

}  // namespace

std::optional<std::vector<Digits>> Split(const Digits& digits, absl::Span<const int64_t> extents) {
  Digits rest = digits;
  std::vector<Digits> parts(extents.size());
  // The last dimension is the least significant.
  for (size_t i = extents.size(); i-- > 0;) {
    if (!TakeLow(&rest, extents[i], &parts[i])) return std::nullopt;
    parts[i] = Normalized(std::move(parts[i]));
  }
  if (!rest.empty()) return std::nullopt;
  for (size_t i = 0; i < extents.size(); ++i)
    KILN_DCHECK(extents[i] <= 1 || ExtentOf(parts[i]) == extents[i]);
  return parts;
}

std::optional<std::vector<std::pair<Digit, Digit>>> Align(const Digits& a, const Digits& b) {
  Digits high_a = a;
  Digits high_b = b;
  std::vector<std::pair<Digit, Digit>> pairs;
  while (!high_a.empty() && !high_b.empty()) {
    // Takes the smaller of the two lowest digits, so that each side's part is a single digit.
    const int64_t extent = std::min(high_a.back().extent, high_b.back().extent);
    Digits low_a;
    Digits low_b;
    if (!TakeLow(&high_a, extent, &low_a) || !TakeLow(&high_b, extent, &low_b)) return std::nullopt;
    if (extent > 1) pairs.emplace_back(low_a.front(), low_b.front());
    if (extent == 1) {
      // TakeLow takes nothing for an extent of 1; without this the loop would not end.
      if (high_a.back().extent == 1) high_a.pop_back();
      if (!high_b.empty() && high_b.back().extent == 1) high_b.pop_back();
    }
  }
  if (ExtentOf(high_a) != 1 || ExtentOf(high_b) != 1) return std::nullopt;
  return pairs;
}

std::optional<Digits> Substitute(const Digits& digits, const std::vector<Digits>& axes) {
  Digits result;
  for (const Digit& digit : digits) {
    if (digit.loop == kUnknownLoop) {
      result.push_back(digit);
      continue;
    }
    // Splits the axis into three parts: above the digit, the digit itself, and below it.
    KILN_CHECK_LT(digit.loop, axes.size());
    const Digits& axis = axes[digit.loop];
    const int64_t extent = ExtentOf(axis);
    const int64_t above = extent / (digit.stride * digit.extent);
    std::optional<std::vector<Digits>> parts = Split(axis, {above, digit.extent, digit.stride});
    if (!parts.has_value()) return std::nullopt;
    result.insert(result.end(), (*parts)[1].begin(), (*parts)[1].end());
  }
  return Normalized(std::move(result));
}

Access Identity(const ir::Shape& shape) {
  Access access;
  for (size_t i = 0; i < shape.size(); ++i) {
    access.axes.emplace_back(shape[i] == 1 ? Digits{} : Digits{{static_cast<int>(i), 1, shape[i]}});
  }
  return access;
}

namespace {

using Axes = std::vector<AxisIndex>;

Axes Reshape(const Node* node, const Axes& axes) {
  const ir::Shape& from = node->shape();
  const ir::Shape& to = node->operand(0)->shape();
  Axes result(to.size());
  for (size_t i = 0; i < to.size(); ++i) {
    // A dimension of size 1 has index 0, even if the other dimensions are unknown.
    if (to[i] == 1) result[i] = Digits{};
  }
  // Products of sizes say nothing once a size is 0.
  if (ir::NumElements(from) == 0) return result;
  // An axis with an unknown index only affects its own group.
  for (const ir::ReshapeGroup& group : ir::ReshapeGroups(from, to)) {
    Digits all;
    bool known = true;
    for (size_t i = group.from; i < group.from_end; ++i) {
      known = known && axes[i].has_value();
      if (known) all.insert(all.end(), axes[i]->begin(), axes[i]->end());
    }
    if (!known) continue;
    const std::vector<int64_t> extents(to.begin() + static_cast<std::ptrdiff_t>(group.to),
                                       to.begin() + static_cast<std::ptrdiff_t>(group.to_end));
    std::optional<std::vector<Digits>> parts = Split(Normalized(std::move(all)), extents);
    if (!parts.has_value()) continue;
    for (size_t i = 0; i < parts->size(); ++i) result[group.to + i] = std::move((*parts)[i]);
  }
  return result;
}

Axes WithUnknown(Axes axes, absl::Span<const int64_t> unknown) {
  for (const int64_t axis : unknown) axes[axis] = std::nullopt;
  return axes;
}

// Every index read is within the operand's dimensions, so its extent is known.
Axes WithUnknownDigits(const Node* node, Axes axes) {
  const ir::Shape& from = node->operand(0)->shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    // Unknown, for example for a pad, whose index only its guard keeps in bounds.
    if (!axes[i].has_value()) continue;
    const bool flipped =
        node->op() == Op::kFlip && absl::c_linear_search(ir::IntsOf(node), static_cast<int64_t>(i));
    if (!flipped && node->shape()[i] == from[i]) continue;
    axes[i] = from[i] == 1 ? Digits{} : Digits{{kUnknownLoop, 1, from[i]}};
  }
  return axes;
}

// Pad and shrink keep the axes that they do not cut.
Axes Shifted(const Node* node, const Axes& axes) {
  std::vector<int64_t> changed;
  for (size_t i = 0; i < node->shape().size(); ++i) {
    if (node->shape()[i] != node->operand(0)->shape()[i]) {
      changed.push_back(static_cast<int64_t>(i));
    }
  }
  return WithUnknown(axes, changed);
}

Axes Expand(const Node* node, Axes axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (node->operand(0)->shape()[i] == 1) axes[i] = Digits{};
  }
  return axes;
}

Axes MoveAxes(const Node* node, const Axes& axes) {
  switch (node->op()) {
    case Op::kReshape:
      return Reshape(node, axes);
    case Op::kPermute: {
      Axes result(axes.size());
      for (size_t i = 0; i < axes.size(); ++i) result[ir::IntsOf(node)[i]] = axes[i];
      return result;
    }
    case Op::kExpand:
      return Expand(node, axes);
    case Op::kPad:
    case Op::kShrink:
      return Shifted(node, axes);
    // An index that counts down is not a digit.
    case Op::kFlip:
      return WithUnknown(axes, ir::IntsOf(node));
    // The index along the axis is the sum of the position and of the offset within the window (the
    // last dimension): a sum is not a number in digits.
    case Op::kWindow:
      return WithUnknown(Axes(axes.begin(), axes.end() - 1), {ir::IntsOf(node)[0]});
    case Op::kUnwindow:
      return WithUnknown(axes, {ir::IntsOf(node)[0]});
    default:
      return axes;
  }
}

}  // namespace

Access MoveThrough(const Node* node, const Access& access, bool in_digits) {
  if (in_digits && (node->op() == Op::kFlip || node->op() == Op::kShrink)) {
    return {WithUnknownDigits(node, access.axes), access.conditional};
  }
  const bool guards = node->op() == Op::kPad || node->op() == Op::kUnwindow;
  return {MoveAxes(node, access.axes), access.conditional || guards};
}

}  // namespace kiln::partition
