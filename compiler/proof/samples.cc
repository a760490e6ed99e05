#include "compiler/proof/samples.h"

#include <algorithm>
#include <utility>

namespace kiln::proof {
namespace {

using schedule::Axis;
using schedule::Binding;

// Bound on the values of one axis, besides those in every sample.
constexpr size_t kValuesMax = 3;

void Insert(std::vector<int64_t>* sorted, int64_t value) {
  const auto place = std::lower_bound(sorted->begin(), sorted->end(), value);
  if (place == sorted->end() || *place != value) sorted->insert(place, value);
}

}  // namespace

Sampler::Sampler(const schedule::Plan& plan, uint64_t seed) : plan_(plan), random_(seed) {
  leaves_.resize(plan.axes.size());
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const Axis& axis = plan.axes[i];
    if (axis.parent >= 0 || axis.fused_into >= 0) continue;
    std::vector<int64_t> extents = {axis.extent};
    if (axis.padded()) Insert(&extents, axis.padded_from);
    Describe(static_cast<int>(i), extents, {});
  }
}

// `extents` are the possible lengths of the axis; there are several if it is part of a ragged one.
// The values in `forced` are in every sample. They are the values that the program runs without a
// loop, so always: that of a loop that runs once, and the outer loop's at a ragged end.
void Sampler::Describe(int number, const std::vector<int64_t>& extents,
                       std::vector<int64_t> forced) {
  const Axis& axis = plan_.axes[number];
  if (!axis.split()) {
    Leaf& leaf = leaves_[number];
    leaf.extent = axis.extent;
    leaf.shortest = *std::min_element(extents.begin(), extents.end());
    for (const int64_t extent : extents) {
      if (extent == 1) Insert(&forced, 0);
      Insert(&leaf.ends, 0);
      Insert(&leaf.ends, extent - 1);
      // The last of these values is beyond a ragged end.
      for (const int64_t value : {int64_t{0}, int64_t{1}, extent - 2, extent - 1, extent}) {
        if (value >= 0 && value < leaf.extent) Insert(&leaf.notable, value);
      }
    }
    // All parts of a partial sum are added, even those that a short axis leaves at their initial
    // value, so they are in every sample. All lanes run even if they are not needed, so the last
    // one may be out of bounds.
    if (axis.binding == Binding::kVector) Insert(&leaf.ends, axis.extent - 1);
    const bool each_part = axis.partial && axis.binding == Binding::kUnroll;
    for (int64_t value = 0; each_part && value < axis.extent; ++value) Insert(&forced, value);
    leaf.forced = std::move(forced);
    return;
  }
  std::vector<int64_t> outer, inner, outer_forced;
  for (const int64_t extent : extents) {
    const int64_t whole = extent / axis.factor;
    const int64_t rest = extent % axis.factor;
    Insert(&outer, whole + (rest != 0 ? 1 : 0));
    if (whole > 0) Insert(&inner, axis.factor);
    if (rest != 0) Insert(&inner, rest);
    if (rest != 0) Insert(&outer_forced, whole);
    if (whole == 1) Insert(&outer_forced, 0);
  }
  Describe(axis.outer, outer, std::move(outer_forced));
  Describe(axis.inner, inner, {});
}

int64_t Sampler::Pick(const Leaf& leaf) {
  if (round_ == 0) return leaf.ends.front();
  if (round_ == 1) return leaf.ends.back();
  if (round_ % 2 == 0) return leaf.ends[random_() % leaf.ends.size()];
  if (random_() % 2 == 0) return leaf.notable[random_() % leaf.notable.size()];
  return static_cast<int64_t>(random_() % static_cast<uint64_t>(leaf.extent));
}

Samples Sampler::Next(int64_t points) {
  Samples samples(leaves_.size());
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    if (leaf.extent == 0) continue;
    samples[i] = leaf.forced;
    if (leaf.forced.empty() || round_ < 2 || random_() % 2 == 0) Insert(&samples[i], Pick(leaf));
    // Iterations beyond a ragged end must do nothing, which shows only next to valid ones.
    if (samples[i].front() >= leaf.shortest) Insert(&samples[i], leaf.shortest - 1);
  }
  Widen(points, &samples);
  ++round_;
  return samples;
}

Samples Sampler::At(const kernel::IndexPoint& point, int64_t points) {
  Samples samples = Next(points);
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    if (plan_.axes[i].parent >= 0 || plan_.axes[i].fused_into >= 0) continue;
    const int axis = static_cast<int>(i);
    bool known = false;
    const int64_t value = ValueOf(axis, point, &known);
    if (known) Fix(axis, value, &samples);
  }
  return samples;
}

// Returns the value of a range or of the axis that ranges were fused into; `known`: whether one of
// them is in the point.
int64_t Sampler::ValueOf(int number, const kernel::IndexPoint& point, bool* known) const {
  if (const ir::Node* range = plan_.axes[number].range; range != nullptr) {
    const auto found = point.find(range);
    if (found == point.end()) return 0;
    *known = true;
    return found->second;
  }
  int64_t value = 0;
  for (size_t i = 0; i < plan_.axes.size(); ++i) {
    const Axis& part = plan_.axes[i];
    if (part.fused_into != number) continue;
    const int64_t own = ValueOf(static_cast<int>(i), point, known);
    if (part.fused_as_inner) {
      value += own;
      continue;
    }
    for (const Axis& inner : plan_.axes) {
      if (inner.fused_into == number && inner.fused_as_inner) value += own * inner.extent;
    }
  }
  return value;
}

void Sampler::Fix(int number, int64_t value, Samples* samples) const {
  const Axis& axis = plan_.axes[number];
  if (axis.split()) {
    Fix(axis.outer, value / axis.factor, samples);
    Fix(axis.inner, value % axis.factor, samples);
    return;
  }
  std::vector<int64_t>& values = (*samples)[number];
  values = leaves_[number].forced;
  Insert(&values, value);
  if (values.front() >= leaves_[number].shortest) Insert(&values, leaves_[number].shortest - 1);
}

int64_t Sampler::PointsOf(int stage, const Samples& samples) const {
  int64_t points = 1;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const int of = plan_.axes[i].stage;
    // The grid's axes (-1) are around every stage.
    if (leaves_[i].extent > 0 && (of == stage || of == -1)) {
      points *= static_cast<int64_t>(samples[i].size());
    }
  }
  return points;
}

// Adds values to axes, in random order, while the number of points allows it.
void Sampler::Widen(int64_t points, Samples* samples) {
  std::vector<size_t> order;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].extent > 1) order.push_back(i);
  }
  std::shuffle(order.begin(), order.end(), random_);
  for (const size_t i : order) {
    const int stage = plan_.axes[i].stage;
    int64_t highest_points = 0;
    for (int s = stage < 0 ? 0 : stage; s < static_cast<int>(plan_.stages.size()); ++s) {
      highest_points = std::max(highest_points, PointsOf(s, *samples));
      if (stage >= 0) break;
    }
    const size_t values_max = leaves_[i].forced.size() + kValuesMax;
    for (int tries = 0; tries < 3; ++tries) {
      std::vector<int64_t>& values = (*samples)[i];
      const auto size = static_cast<int64_t>(values.size());
      if (values.size() >= values_max || highest_points / size * (size + 1) > points) break;
      Insert(&values, Pick(leaves_[i]));
      highest_points = highest_points / size * static_cast<int64_t>(values.size());
    }
  }
}

std::vector<int64_t> Sampler::ValuesOf(int number, const Samples& samples) const {
  const Axis& axis = plan_.axes[number];
  const int64_t extent = axis.padded() ? axis.padded_from : axis.extent;
  std::vector<int64_t> values;
  if (!axis.split()) {
    for (const int64_t value : samples[number]) {
      if (value < extent) values.push_back(value);
    }
    return values;
  }
  const std::vector<int64_t> inner = ValuesOf(axis.inner, samples);
  for (const int64_t outer : ValuesOf(axis.outer, samples)) {
    for (const int64_t part : inner) {
      const int64_t value = outer * axis.factor + part;
      if (part < axis.factor && value < extent) values.push_back(value);
    }
  }
  return values;
}

}  // namespace kiln::proof
