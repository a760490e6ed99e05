// The decisions that a schedule consists of, as named knobs. A setting (setting.h) gives each knob
// a value; forms/forms.h says which knobs a stage has and which values are legal.
#ifndef KILN_COMPILER_SEARCH_KNOBS_KNOB_H_
#define KILN_COMPILER_SEARCH_KNOBS_KNOB_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace kiln::search {

// The pattern of a stage's loops. Each has its own file, and its own knobs.
enum class Form : uint8_t {
  // For cores with vector registers: forms/lanes.cc, forms/columns.cc, forms/scatter.cc,
  // forms/skinny.cc, forms/panel.cc.
  kScalar,       // no lanes
  kSumLanes,     // lanes along a sum
  kPointLanes,   // a point for each lane
  kSquares,      // squares of lanes by lanes, transposed in registers
  kColumnLanes,  // a sum for each lane
  kScatter,
  kRowByRow,     // a contraction of few rows, lanes along its results
  kDotProducts,  // a contraction of few rows, lanes along its sum
  kPanel,        // a contraction in register tiles; one factor is packed
  // For machines whose lanes are threads: forms/thread.cc, forms/block.cc, forms/block_tile.cc,
  // forms/matrix.cc.
  kThread,       // a task for each thread
  kBlockPoints,  // a block of threads for each task; a thread computes whole points
  kBlockSum,     // a block's threads share each sum
  kBlockTile,    // a contraction in tiles in shared memory
  kMatrixTile,   // the same on matrix units
};

// The order is that of the knobs in the text of a setting.
enum class Knob : uint8_t {
  kForm,
  kLaneAxis,
  kLaneLoops,
  kLanes,
  kVectors,
  kFactor,
  kRowAxis,
  kRows,
  kMoreRowAxis,
  kMoreRows,
  kColumnAxis,
  kColumns,
  kThreadRows,
  kThreadColumns,
  kThreadAxis,
  kThreads,
  kElements,
  kTerms,
  kUnrolledTerms,
  kSumOrder,
  kSkipPadding,
  kInstructionTerms,
  kPartialSums,
  kUnrollSum,
  kSharedSteps,
  kBlock,
  kPanelLoops,
  kOuterRows,
  kStagedRows,
  kCopyLanes,
  kCopiesAhead,
  kTasks,
  kTaskResults,
  kRowChunks,
  kLaneChunks,
  kTaskOrder,
  kNonTemporal,
  kPrefetch,
};

enum class KnobKind : uint8_t {
  kForm,
  kAxis,    // a range of the kernel, numbered as in its text, or -1: none
  kNumber,  // neighbouring values are near in effect
};

struct KnobRow {
  Knob knob;
  std::string_view name;  // in stored settings: never changes its meaning
  KnobKind kind;
  std::string_view decides;  // for people
};
// All knobs, in the order of the enumeration.
absl::Span<const KnobRow> KnobRows();
const KnobRow& RowOf(Knob knob);
// Returns null if there is no such knob.
const KnobRow* FindKnob(std::string_view name);

// "panel", "r3", "none" or "16".
std::string PrintValue(Knob knob, int64_t value);
// INVALID_ARGUMENT says what the knob takes.
absl::StatusOr<int64_t> ParseValue(Knob knob, std::string_view text);

// The legal values of a knob, and those of them that a search tries.
struct KnobValues {
  Knob knob;
  // The values that a search tries, at most kKnobValuesMax, in ascending order for a kNumber. They
  // are near the heuristic's value, so they change with it.
  std::vector<int64_t> values;
  // A kNumber may have any other value in this range, too: a stored setting must stay legal when
  // the heuristic changes.
  int64_t low = 0;
  int64_t high = -1;
  bool powers = false;  // only powers of two

  bool Admits(int64_t value) const;
  // "a power of two from 1 to 16", for messages.
  std::string Print() const;
};
inline constexpr size_t kKnobValuesMax = 32;

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_KNOBS_KNOB_H_
