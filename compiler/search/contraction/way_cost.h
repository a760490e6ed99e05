// The cost of each way to map a contraction to lanes and rows: the model that chooses among them.
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_WAY_COST_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_WAY_COST_H_

#include <cstdint>
#include <vector>

#include "compiler/search/contraction/contraction.h"
#include "compiler/search/contraction/padding.h"
#include "compiler/search/contraction/way.h"
#include "compiler/search/stage/view.h"

namespace kiln::search {

// A set of the first-level cache has room for so many rows, beside a panel.
inline constexpr int64_t kSetRows = 7;

class WayCost {
 public:
  // The arguments must outlive this.
  WayCost(const StageView& view, const Contraction& contraction)
      : stage_(view.stage()),
        contraction_(contraction),
        target_(view.target),
        writer_(view.axes),
        padding_(view.stage()) {}

  // Returns the cycles until the last thread has finished.
  double Cycles(const ContractionWay& way) const;
  // Returns the share of the terms that are computed if the way skips padding.
  double ComputedShare(const ContractionWay& way) const;
  // Returns whether rows can be read in place.
  bool ReadsInPlace(const ContractionWay& way) const;
  // Returns whether panels that are packed together have elements in common.
  bool SharesPanels(const ContractionWay& way) const;
  // Returns whether panels that are packed together stay in the private cache, or else the sums of
  // all rows while one part of the panels after another is packed.
  bool StaysCached(const ContractionWay& way) const;
  // Returns how many lanes there are, and how many vectors of them.
  int64_t LaneExtent(const ContractionWay& way) const;
  int64_t LaneVectors(const ContractionWay& way) const;
  // Returns into how many pieces the outermost row axis can be cut.
  int64_t RowTiles(const ContractionWay& way) const;
  // Returns the cycles for waiting for rows of a tile that are all in one set of the first cache.
  double SameSetCycles(const ContractionWay& way) const;

 private:
  const ir::Node* Range(int axis) const { return writer_[axis].range; }
  // Returns the elements of a packed panel, or of several, for one lane.
  int64_t PanelTerms(const ContractionWay& way) const;
  // Returns the number of tasks that differ in their lanes; each has all rows.
  int64_t LaneTasks(const ContractionWay& way) const;
  int64_t Tasks(const ContractionWay& way) const;
  // Returns a factor that outweighs small differences in speed: rows should be adjacent in memory,
  // and data staged for one outer row should be used up before the next.
  double Locality(const ContractionWay& way) const;
  // Returns the cycles for one element.
  double CopyCycles(bool contiguous) const;
  double PackingCycles(const ContractionWay& way) const;
  // Returns whether the lanes of a vector may be anywhere in the lane loops, so that each needs a
  // division to know its place.
  bool DividesLanes(const ContractionWay& way) const;
  // Returns whether every vector of lanes reads neighbours in memory.
  bool IsContiguous(const ir::Node* factor, const ContractionWay& way) const;
  // Returns whether the steps of the lane loops make all vectors contiguous, and within whole
  // iterations of the loops that are not.
  template <typename Step>
  bool HasEvenLanes(const ContractionWay& way, Step step_of) const;
  std::vector<schedule::StageOperand::Dimension> RowsLayout(const ContractionWay& way) const;
  // Each task of lanes stages its rows anew. Of windows that overlap, only the union is staged.
  double StagingCycles(const ContractionWay& way) const;
  // Returns the cycles for waiting for rows that no private cache holds, if they are in pieces too
  // short for the processor to fetch them ahead. Sums are ordered by their steps (OrderSums).
  double FarRowsCycles(const ContractionWay& way) const;
  // Returns whether a loop of rows moves along memory, so that the windows of its iterations have
  // lines in common, and these stay in the private cache.
  bool SlidesAlongMemory(const ContractionWay& way) const;
  // Returns the cycles for tests of padding.
  double TestCycles(const ContractionWay& way) const;
  // Returns the steps of all tiles, if none is skipped.
  double TileSteps(const ContractionWay& way) const;
  // Covers all accesses outside the sum.
  double StoringCycles(const ContractionWay& way) const;

  const kernel::Stage& stage_;
  const Contraction& contraction_;
  const drivers::Target& target_;
  const ScheduleWriter& writer_;
  const Padding padding_;
};

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_WAY_COST_H_
