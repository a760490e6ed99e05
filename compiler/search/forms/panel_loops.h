// A contraction in register tiles, resolved: which loop is what, what fits the cache, and its
// directives. panel.h has its knobs.
#ifndef KILN_COMPILER_SEARCH_FORMS_PANEL_LOOPS_H_
#define KILN_COMPILER_SEARCH_FORMS_PANEL_LOOPS_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/directives/stage_operand.h"
#include "compiler/search/contraction/contraction.h"
#include "compiler/search/contraction/way.h"
#include "compiler/search/stage/schedule_writer.h"
#include "compiler/search/stage/view.h"

namespace kiln::search {

// The minimum number of terms for which a panel is packed, however small the cache is.
inline constexpr int64_t kPanelTermsMin = 16;

// The order of the loops of a sum.
enum class SumOrder : uint8_t {
  kKernel,  // as in the kernel
  kSteps,   // the longest steps of the rows outermost, so that rows are read along memory
  kTests,   // those outermost on which tested conditions depend (skip_padding)
};

// The way, and what follows from it within a thread.
struct Panel {
  Contraction contraction;
  ContractionWay way;
  int64_t terms = 1;     // the most that a panel has, unless kPanelTermsMin is more
  int64_t unrolled = 1;  // terms of one step
  SumOrder sum_order = SumOrder::kKernel;
  int64_t outer_rows = 0;
  int64_t staged_rows = -1;
  bool lanes_first = false;  // tasks of lanes come before those of rows

  const std::vector<int>& rows() const { return contraction.only[1 - way.packed]; }
  int64_t block() const { return static_cast<int64_t>(way.tile.vectors) * way.lanes; }
  int64_t element_bytes() const { return ir::SizeOf(contraction.factor[0]->dtype()); }
};

// How the loops of a sum are divided between those around a panel and those within.
struct SumBlocks {
  size_t whole = 0;   // the number of loops outside
  int64_t size = 0;   // of the blocks that the last of them is cut into; 0: it is not cut
  int64_t inner = 1;  // the length of the innermost loop within a panel
};

// Keeps the innermost loops inside as long as their panel has at most `terms` terms, and as much of
// the next one as fits.
SumBlocks CutSum(const std::vector<int>& reduce, int64_t terms, const ScheduleWriter& axes);

// Returns the layout of rows that are staged.
std::vector<schedule::StageOperand::Dimension> RowLayout(const Panel& panel,
                                                         const ScheduleWriter& axes);

// Orders the loops of the sum. Returns whether that changed anything.
bool OrderSums(const StageView& view, SumOrder order, Panel* panel);

// Completes a way, as the heuristic does, by what fits the private cache, which is divided: a
// quarter for the panel, a quarter for sums, half for staged rows.
void FitPanel(const StageView& view, Panel* panel);

// Writes the stage's directives.
void WritePanelLoops(int stage, const Panel& panel, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_PANEL_LOOPS_H_
