// Computes a factor of a product into scratch, in the layout of a StageOperand directive, and reads
// it from there.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_OPERAND_PACKER_H_
#define KILN_COMPILER_SCHEDULE_APPLY_OPERAND_PACKER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler/kernel/expression_folder.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/apply/expression_placer.h"
#include "compiler/schedule/apply/nest.h"
#include "compiler/schedule/apply/stage_buffers.h"
#include "compiler/schedule/directives/stage_operand.h"

namespace kiln::schedule {

// A factor of the product in scratch.
struct StagedOperand {
  struct Term {
    int64_t coefficient = 1;
    int part = 0;  // the axis whose loops were not open
  };
  struct Dimension {
    std::vector<Term> terms;
    Extent low = {0, 0, nullptr};  // the sum of the terms at the first position
    int64_t stride = 0;
  };
  const ir::Node* operand = nullptr;
  int buffer = 0;
  int lanes = 1;  // the last dimension is padded to whole vectors of this length
  std::vector<Dimension> dimensions;
};

class OperandPacker {
 public:
  // The arguments must outlive the packer.
  OperandPacker(const Plan& plan, Nest& nest, kernel::ExpressionFolder& folder,
                const ExpressionPlacer& placer, StageBuffers& buffers)
      : plan_(plan), nest_(nest), folder_(folder), placer_(placer), buffers_(buffers) {}

  // Returns a layout for `operand`, with an element for each point of the axes that are not open in
  // `state`.
  StagedOperand Layout(const StageOperand& directive, const ir::Node* operand, const State& state);
  // Returns the loops that compute it.
  Body Pack(const StageOperand& directive, const StagedOperand& staged, const State& state);
  // Returns its value at a point. Lanes that are not real read nothing, unless zeros are stored for
  // them.
  const ir::Node* Load(const StagedOperand& staged, const State& state);

 private:
  // A loop of the copy.
  struct PackLoop {
    StagedOperand::Dimension dimension;
    Extent extent;
    std::optional<int64_t> step;  // in the source, from one iteration to the next, if known
    bool transposed = false;      // in squares of lanes by lanes
    std::vector<StagedOperand::Dimension> zeroed = {};  // dimensions the loop also counts
  };
  using Terms = std::vector<StagedOperand::Term>;
  std::vector<Terms> Unopened(const StageOperand::Dimension& dimension, const State& state) const;
  int64_t RowLength(int64_t size, int64_t lanes) const;
  const ir::Node* Low(const StagedOperand::Dimension& dimension);
  Extent DimensionExtent(const StagedOperand::Dimension& dimension, const State& state) const;
  const ir::Node* Probe(const Extent& extent);
  std::vector<const ir::Node*> FixToProbes(const StagedOperand& staged, State* state);
  std::optional<kernel::Sum> SourceIndex(const StagedOperand& staged, const State& state,
                                         absl::Span<const ir::Node* const> probes);
  std::vector<int64_t> SourceSteps(const StagedOperand& staged, State state);
  bool HasEvenSteps(const StagedOperand& staged, const PackLoop& loop, State state);
  std::optional<PackLoop> JoinLast(const StagedOperand& staged, absl::Span<const PackLoop> loops,
                                   PackLoop next, const State& state);
  std::vector<PackLoop> PackLoops(const StageOperand& directive, const StagedOperand& staged,
                                  const State& state);
  // `square`: the range within a square, unrolled directly around the lanes; null: no squares.
  Body PackFrom(const StageOperand& directive, const StagedOperand& staged,
                absl::Span<const PackLoop> loops, const State& state, const ir::Node* index,
                const ir::Node* square);
  Body PackLanes(const StageOperand& directive, const StagedOperand& staged, const State& state,
                 const ir::Node* index, const ir::Node* square);
  Statement PackVector(const StagedOperand& staged, int64_t lanes, const State& state,
                       const ir::Node* index, const ir::Node* square, const ir::Node* begin,
                       int64_t count, const ir::Node* condition);
  Body CountLoop(const Extent& extent, const std::function<Body(const ir::Node*)>& inside);
  void FixDimension(const StagedOperand::Dimension& dimension, const ir::Node* value, State* state);
  bool IsFilledUp(const StagedOperand& staged, const LaneMask& mask, const State& state);
  const ir::Node* MaskLoads(const ir::Node* root, const ir::Node* valid);

  // In pack_threads.cc: elements, or vectors of them, distributed over the threads of the block.
  Body PackByThreads(const StagedOperand& staged, const State& state);
  struct ThreadDigit;
  std::vector<ThreadDigit> ThreadDigits(const StagedOperand& staged, const State& state);
  Body EachSoMany(const Extent& extent, int64_t step, const ir::Node* first,
                  const std::function<Body(const ir::Node*)>& inside);
  Body PackDigits(const StagedOperand& staged, absl::Span<const ThreadDigit> digits,
                  const State& state, const ir::Node* index, const ir::Node* vector);
  Body PackPoint(const StagedOperand& staged, const State& state, const ir::Node* index,
                 const ir::Node* vector);
  bool CopiesVectors(const StagedOperand& staged, const State& state);

  const Plan& plan_;
  Nest& nest_;
  kernel::ExpressionFolder& folder_;
  const ExpressionPlacer& placer_;
  StageBuffers& buffers_;
};

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_OPERAND_PACKER_H_
