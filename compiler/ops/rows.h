// The rows of each family, which op_table.cc combines. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_ROWS_H_
#define KILN_COMPILER_OPS_ROWS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Attributes for rows.
inline AttributeDef RequiredInt(std::string_view name) {
  return {name, AttributeDef::Type::kInt, std::nullopt};
}
inline AttributeDef OptionalInt(std::string_view name, int64_t value) {
  return {name, AttributeDef::Type::kInt, value};
}
inline AttributeDef OptionalFloat(std::string_view name, double value) {
  return {name, AttributeDef::Type::kFloat, value};
}
inline AttributeDef OptionalBool(std::string_view name, bool value) {
  return {name, AttributeDef::Type::kBool, value};
}
inline AttributeDef RequiredString(std::string_view name) {
  return {name, AttributeDef::Type::kString, std::nullopt};
}
inline AttributeDef OptionalString(std::string_view name, std::string value) {
  return {name, AttributeDef::Type::kString, std::move(value)};
}
inline AttributeDef RequiredInts(std::string_view name) {
  return {name, AttributeDef::Type::kInts, std::nullopt};
}
inline AttributeDef OptionalInts(std::string_view name, std::vector<int64_t> values) {
  return {name, AttributeDef::Type::kInts, std::move(values)};
}
inline AttributeDef RequiredShape() { return {"shape", AttributeDef::Type::kShape, std::nullopt}; }
inline AttributeDef OptionalShape() {
  return {"shape", AttributeDef::Type::kShape, std::vector<int64_t>{}};
}
// Restricts the values of an attribute.
inline AttributeDef OneOf(AttributeDef attribute, std::vector<std::string_view> choices) {
  attribute.choices = std::move(choices);
  return attribute;
}
inline AttributeDef Within(AttributeDef::Range range, AttributeDef attribute) {
  attribute.range = range;
  return attribute;
}
inline AttributeDef AboveZero(AttributeDef attribute) {
  return Within(AttributeDef::Range::kPositive, std::move(attribute));
}
inline AttributeDef NotNegative(AttributeDef attribute) {
  return Within(AttributeDef::Range::kNotNegative, std::move(attribute));
}
inline AttributeDef NotZero(AttributeDef attribute) {
  return Within(AttributeDef::Range::kNotZero, std::move(attribute));
}
inline AttributeDef Fraction(AttributeDef attribute) {
  return Within(AttributeDef::Range::kFraction, std::move(attribute));
}
// Adds constraints to a row.
inline OpDef Requiring(std::vector<Rule> constraints, OpDef row) {
  row.constraints = std::move(constraints);
  return row;
}
// The two attributes of every reduction.
inline std::vector<AttributeDef> ReduceAttributes() {
  return {OptionalInts("axes", {}), OptionalBool("keepdims", false)};
}

// Primitives.
std::vector<OpDef> ElementwiseOps();
std::vector<OpDef> ReduceOps();
std::vector<OpDef> MovementOps();
std::vector<OpDef> IndexedOps();
std::vector<OpDef> SourceOps();
std::vector<OpDef> StructureOps();

// Composites.
std::vector<OpDef> MathComposites();
std::vector<OpDef> ExponentialComposites();
std::vector<OpDef> TrigonometricComposites();
std::vector<OpDef> SpecialComposites();
std::vector<OpDef> NumberComposites();
std::vector<OpDef> LogicComposites();
std::vector<OpDef> ActivationComposites();
std::vector<OpDef> PiecewiseComposites();
std::vector<OpDef> StatisticsComposites();
std::vector<OpDef> LinearComposites();
std::vector<OpDef> AttentionComposites();
std::vector<OpDef> ConvolutionComposites();
std::vector<OpDef> PoolComposites();
std::vector<OpDef> ResizeComposites();
std::vector<OpDef> BorderComposites();
std::vector<OpDef> FoldComposites();
std::vector<OpDef> NormalizationComposites();
std::vector<OpDef> DistanceComposites();
std::vector<OpDef> LossComposites();
std::vector<OpDef> LabelLossComposites();
std::vector<OpDef> RowLossComposites();
std::vector<OpDef> ArrangeComposites();
std::vector<OpDef> RandomComposites();
std::vector<OpDef> DropoutComposites();
std::vector<OpDef> IndexedComposites();
std::vector<OpDef> CumulativeComposites();
std::vector<OpDef> SortComposites();
std::vector<OpDef> MatrixComposites();
std::vector<OpDef> EinsumComposites();
std::vector<OpDef> FactorizationComposites();

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_ROWS_H_
