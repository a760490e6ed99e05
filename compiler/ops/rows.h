// The families' rows, which op_table.cc puts together. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_ROWS_H_
#define KILN_COMPILER_OPS_ROWS_H_

#include <vector>

#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Primitives.
std::vector<OpDef> ElementwiseOps();
std::vector<OpDef> ReduceOps();
std::vector<OpDef> MovementOps();
std::vector<OpDef> IndexedOps();
std::vector<OpDef> SourceOps();
std::vector<OpDef> StructureOps();

// Composites.
std::vector<OpDef> MathComposites();
std::vector<OpDef> LogicComposites();
std::vector<OpDef> ActivationComposites();
std::vector<OpDef> StatisticsComposites();
std::vector<OpDef> LinearComposites();
std::vector<OpDef> ConvolutionComposites();
std::vector<OpDef> NormalizationComposites();
std::vector<OpDef> LossComposites();
std::vector<OpDef> ArrangeComposites();
std::vector<OpDef> RandomComposites();

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_ROWS_H_
