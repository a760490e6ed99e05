#include "compiler/search/stage/schedule_writer.h"

#include <algorithm>

#include "compiler/schedule/plan.h"

namespace kiln::search {

ScheduleWriter::ScheduleWriter(const kernel::Kernel& kernel, schedule::Schedule* schedule)
    : kernel_(kernel), schedule_(*schedule) {
  auto add_all = [this](const std::vector<const ir::Node*>& ranges) {
    std::vector<int> axes;
    for (const ir::Node* range : ranges) {
      const auto number = static_cast<int64_t>(axes_.size());
      axes.push_back(Add({range->attr<ir::RangeAttr>().extent, range, number}));
    }
    return axes;
  };
  grid_ = add_all(kernel.grid);
  for (const kernel::Stage& stage : kernel.stages) {
    ranges_.push_back(add_all(stage.ranges));
    reduce_ranges_.push_back(add_all(stage.reduce_ranges));
    ordered_ranges_.push_back(add_all(stage.ordered_ranges));
  }
}

int64_t ScheduleWriter::Product(const std::vector<int>& axes) const {
  int64_t product = 1;
  for (int axis : axes) product *= extent(axis);
  return product;
}

int ScheduleWriter::Largest(const std::vector<int>& axes) const {
  return *std::max_element(axes.begin(), axes.end(),
                           [this](int a, int b) { return extent(a) < extent(b); });
}

int ScheduleWriter::Add(const AxisInfo& axis) {
  axes_.push_back(axis);
  return static_cast<int>(axes_.size()) - 1;
}

int ScheduleWriter::Fuse(int outer, int inner) {
  schedule_.directives.push_back(schedule::Fuse{outer, inner});
  return Add({extent(outer) * extent(inner), axes_[inner].range, axes_[inner].number});
}

std::pair<int, int> ScheduleWriter::Split(int axis, int64_t factor) {
  schedule_.directives.push_back(schedule::Split{axis, factor});
  // Numbered as in the planner (plan.cc): the outer part first.
  const int outer = Add({(extent(axis) + factor - 1) / factor});
  return {outer, Add({factor})};
}

void ScheduleWriter::Pad(int axis, int64_t multiple) {
  schedule_.directives.push_back(schedule::Pad{axis, multiple});
  int64_t& extent = axes_[axis].extent;
  extent = (extent + multiple - 1) / multiple * multiple;
}

void ScheduleWriter::Bind(int axis, schedule::Binding binding) {
  schedule_.directives.push_back(schedule::Bind{axis, binding});
}

void ScheduleWriter::Ahead(int axis) { schedule_.directives.push_back(schedule::Ahead{axis}); }
void ScheduleWriter::Partial(int axis) { schedule_.directives.push_back(schedule::Partial{axis}); }

void ScheduleWriter::Order(int stage, std::vector<int> axes) {
  schedule_.directives.push_back(schedule::Order{stage, std::move(axes)});
}

void ScheduleWriter::Stage(schedule::StageOperand directive) {
  schedule_.directives.push_back(std::move(directive));
}

void ScheduleWriter::Stream(int stage) { schedule_.directives.push_back(schedule::Stream{stage}); }

void ScheduleWriter::Skip(int stage) { schedule_.directives.push_back(schedule::Skip{stage}); }

void ScheduleWriter::Prefetch(schedule::Prefetch directive) {
  schedule_.directives.push_back(directive);
}

std::vector<int> ScheduleWriter::FuseAll(const std::vector<int>& axes) {
  std::vector<int> fused;
  for (int axis : axes) {
    if (!fused.empty() && schedule::IsContiguous(kernel_, axes_[fused.back()].range,
                                                 axes_[axis].range, extent(axis))) {
      fused.back() = Fuse(fused.back(), axis);
    } else {
      fused.push_back(axis);
    }
  }
  return fused;
}

}  // namespace kiln::search
