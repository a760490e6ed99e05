// Writes a schedule and tracks its axes: the numbers that Apply will give them, and their
// properties.
#ifndef KILN_COMPILER_SEARCH_STAGE_SCHEDULE_WRITER_H_
#define KILN_COMPILER_SEARCH_STAGE_SCHEDULE_WRITER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"

namespace kiln::search {

struct AxisInfo {
  int64_t extent = 0;
  const ir::Node* range = nullptr;  // the kernel's range whose coefficient is this axis's step;
                                    // null for parts of splits
  int64_t number = -1;              // of that range, in the kernel's order
};

class ScheduleWriter {
 public:
  // `schedule` gets the directives. Requires: it is empty, and outlives the writer.
  ScheduleWriter(const kernel::Kernel& kernel, schedule::Schedule* schedule);

  const AxisInfo& operator[](int axis) const { return axes_[axis]; }
  int64_t extent(int axis) const { return axes_[axis].extent; }
  // Returns the number of the kernel's range that names the axis (of a fused axis, the inner one),
  // or -1 for a part of a split.
  int64_t RangeOf(int axis) const { return axes_[axis].number; }
  // Returns the product of the axes' extents.
  int64_t Product(const std::vector<int>& axes) const;
  // Returns the axis with the largest extent. Requires: at least one axis.
  int Largest(const std::vector<int>& axes) const;
  // The axes of the kernel's ranges, by the part of the kernel that they belong to.
  const std::vector<int>& grid() const { return grid_; }
  const std::vector<int>& ranges(int stage) const { return ranges_[stage]; }
  const std::vector<int>& reduce_ranges(int stage) const { return reduce_ranges_[stage]; }
  const std::vector<int>& ordered_ranges(int stage) const { return ordered_ranges_[stage]; }

  int Fuse(int outer, int inner);
  // Returns {outer, inner}.
  std::pair<int, int> Split(int axis, int64_t factor);
  void Pad(int axis, int64_t multiple);
  void Bind(int axis, schedule::Binding binding);
  void Partial(int axis);
  void Ahead(int axis);
  void Order(int stage, std::vector<int> axes);
  void Stage(schedule::StageOperand directive);
  void Stream(int stage);
  void Skip(int stage);
  void Prefetch(schedule::Prefetch directive);

  // Fuses adjacent `axes` wherever they are contiguous in the whole kernel.
  std::vector<int> FuseAll(const std::vector<int>& axes);

 private:
  int Add(const AxisInfo& axis);

  const kernel::Kernel& kernel_;
  schedule::Schedule& schedule_;
  std::vector<AxisInfo> axes_;
  std::vector<int> grid_;
  std::vector<std::vector<int>> ranges_;
  std::vector<std::vector<int>> reduce_ranges_;
  std::vector<std::vector<int>> ordered_ranges_;
};

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_SCHEDULE_WRITER_H_
