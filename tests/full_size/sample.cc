#include "tests/full_size/sample.h"

#include <algorithm>
#include <random>

#include "compiler/schedule/plan.h"

namespace kiln::full_size {
namespace {

using Ranges = std::vector<const ir::Node*>;

// The maximum number of corners of a section and the minimum number of tasks, no matter how long
// they are.
constexpr int64_t kCornersMax = 128;
constexpr int64_t kTasksMin = 4;
// Neighbours along the innermost loop, which are computed together.
constexpr int64_t kRun = 8;

int64_t RangeExtent(const ir::Node* range) { return range->attr<ir::RangeAttr>().extent; }

int64_t Product(const Ranges& ranges) {
  int64_t product = 1;
  for (const ir::Node* range : ranges) product *= RangeExtent(range);
  return product;
}

int64_t PointsOf(const kernel::Stage& stage) {
  return Product(stage.ranges) * Product(stage.reduce_ranges) * Product(stage.ordered_ranges);
}

// Loops whose points are tasks.
struct Section {
  std::vector<int64_t> extents;
  int64_t tasks = 1;
  int64_t points_of_task = 1;
};

std::vector<Section> SectionsOf(const kernel::Kernel& kernel) {
  std::vector<Section> sections;
  auto add = [&sections](const Ranges& ranges, int64_t points_of_task) {
    Section section;
    for (const ir::Node* range : ranges) section.extents.push_back(RangeExtent(range));
    section.tasks = Product(ranges);
    section.points_of_task = points_of_task;
    sections.push_back(std::move(section));
  };
  if (schedule::SharesGrid(kernel)) {
    int64_t points = 0;
    for (const kernel::Stage& stage : kernel.stages) points += PointsOf(stage);
    add(kernel.grid, points);
    return sections;
  }
  for (const kernel::Stage& stage : kernel.stages) {
    Ranges ranges = kernel.grid;
    ranges.insert(ranges.end(), stage.ranges.begin(), stage.ranges.end());
    add(ranges, Product(stage.reduce_ranges) * Product(stage.ordered_ranges));
  }
  return sections;
}

int64_t Draw(int64_t extent, std::mt19937_64& random) {
  // Half of the places are near an edge, where tails and masks are.
  const auto near = static_cast<int64_t>(random() % std::min<int64_t>(extent, 20));
  switch (random() % 4) {
    case 0:
      return near;
    case 1:
      return extent - 1 - near;
    default:
      return static_cast<int64_t>(random() % static_cast<uint64_t>(extent));
  }
}

void SampleSection(const Section& section, int64_t first_task, int64_t points,
                   std::mt19937_64& random, std::vector<std::pair<int64_t, int64_t>>* runs) {
  int64_t left = std::max(points / std::max<int64_t>(section.points_of_task, 1), kTasksMin);
  if (left >= section.tasks) {
    runs->push_back({first_task, first_task + section.tasks});
    return;
  }
  int64_t corners = 1;
  for (int64_t extent : section.extents) corners *= extent > 1 && corners < kCornersMax ? 2 : 1;
  for (int64_t drawn = 0; left > 0; ++drawn) {
    int64_t task = 0;
    int64_t bits = drawn;
    for (int64_t extent : section.extents) {
      int64_t at = 0;
      // Each of the first draws is a corner: its bits choose an end of each loop.
      if (drawn >= corners) {
        at = Draw(extent, random);
      } else if (extent > 1) {
        at = bits % 2 == 0 ? 0 : extent - 1;
        bits /= 2;
      }
      task = task * extent + at;
    }
    const int64_t end = drawn < corners ? task + 1 : std::min(task + kRun, section.tasks);
    runs->push_back({first_task + task, first_task + end});
    left -= end - task;
  }
}

}  // namespace

schedule::Schedule PointByPoint(const kernel::Kernel& kernel) {
  schedule::Schedule schedule;
  int axis = 0;
  auto bind = [&](const Ranges& ranges, bool as_task) {
    for (size_t i = 0; i < ranges.size(); ++i, ++axis) {
      if (as_task) schedule.directives.push_back(schedule::Bind{axis, schedule::Binding::kTask});
    }
  };
  bind(kernel.grid, true);
  const bool shared = schedule::SharesGrid(kernel);
  for (const kernel::Stage& stage : kernel.stages) {
    bind(stage.ranges, !shared);
    bind(stage.reduce_ranges, false);
    bind(stage.ordered_ranges, false);
  }
  return schedule;
}

std::vector<std::pair<int64_t, int64_t>> SampleTasks(const kernel::Kernel& kernel, int64_t points,
                                                     uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::pair<int64_t, int64_t>> runs;
  const std::vector<Section> sections = SectionsOf(kernel);
  int64_t first_task = 0;
  for (const Section& section : sections) {
    SampleSection(section, first_task, points / static_cast<int64_t>(sections.size()), random,
                  &runs);
    first_task += section.tasks;
  }
  return runs;
}

}  // namespace kiln::full_size
