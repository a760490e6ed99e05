// The cost of a stage with vector lanes along one of its axes: a count of vector instructions, good
// enough to compare axes.
#ifndef KILN_COMPILER_SEARCH_STAGE_COST_H_
#define KILN_COMPILER_SEARCH_STAGE_COST_H_

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// The work for one point of a stage. Inside: for each point of the reduction; outside: once, after
// it.
struct StageWork {
  struct Access {
    const ir::Node* index = nullptr;
    int buffer = 0;
    bool store = false;
    bool inside = false;
    int bytes = 1;  // of the element
  };
  std::vector<Access> accesses;
  int inside_operations = 0;
  int outside_operations = 0;
  int reductions = 0;
  int widest = 1;  // bytes of the widest element
};
StageWork WorkOf(const kernel::Stage& stage);

// Returns the bytes of the widest element that is stored, or differs from one step of the range to
// the next.
int WidestAlong(const StageWork& work, const ir::Node* range);

// How an access moves from one lane to the next.
enum class LaneAccess : uint8_t {
  kUniform,    // the same element
  kWhole,      // adjacent elements
  kShuffled,   // elements of two vectors
  kScattered,  // anything else
};
LaneAccess AccessAlong(const ir::Node* index, const ir::Node* range);

// The same for vectors of this many lanes, each of which begins at a multiple of it: blocks of
// lanes that change places, as a flip of short runs makes them, are whole vectors or within a few.
LaneAccess AccessOfLanes(const ir::Node* index, const ir::Node* range, int lanes);

// Returns a small d for which an index has range / d, so that d steps of the range read the same
// element, or 1 if there is none.
int64_t SharedSteps(const StageWork& work, const ir::Node* range);

struct LaneAxis {
  const ir::Node* range = nullptr;  // null: no lanes
  int64_t extent = 1;
  bool reduce = false;
};
// Returns the cost in the unit of `costs`, which are the target's. `points`, `reduce_points`: the
// number of points of the stage's ranges and of its reduce ranges.
double CostOf(const StageWork& work, int64_t points, int64_t reduce_points, const LaneAxis& axis,
              int lanes, const drivers::InstructionCosts& costs);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_COST_H_
