#include "compiler/ops/rules/rule_functions.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/spec.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/rules/einsum.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/sliding.h"

namespace kiln::ops {
namespace {

using ir::Shape;
using Arguments = absl::Span<const RuleValue>;
using Shapes = std::vector<Shape>;

// Builtins of Python.

RuleValue Len(RuleRun& run, Arguments arguments) {
  if (const auto* shapes = std::get_if<Shapes>(&arguments[0])) {
    return static_cast<int64_t>(shapes->size());
  }
  if (const auto* dtypes = std::get_if<std::vector<ir::DType>>(&arguments[0])) {
    return static_cast<int64_t>(dtypes->size());
  }
  return static_cast<int64_t>(run.ShapeOf(arguments[0]).size());
}

RuleValue AsTuple(RuleRun& run, Arguments arguments) { return run.ShapeOf(arguments[0]); }

RuleValue Sorted(RuleRun& run, Arguments arguments) {
  Shape sorted = run.ShapeOf(arguments[0]);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Rules iterate over dimensions, so a range is short.
RuleValue Range(RuleRun& run, Arguments arguments) {
  const int64_t begin = arguments.size() > 1 ? run.IntOf(arguments[0]) : 0;
  const int64_t end = run.IntOf(arguments.back());
  Shape range;
  for (int64_t i = begin; i < end; ++i) range.push_back(i);
  return range;
}

RuleValue Least(RuleRun& run, Arguments arguments) {
  int64_t lowest = run.IntOf(arguments[0]);
  for (const RuleValue& other : arguments) lowest = std::min(lowest, run.IntOf(other));
  return lowest;
}

RuleValue Most(RuleRun& run, Arguments arguments) {
  int64_t highest = run.IntOf(arguments[0]);
  for (const RuleValue& other : arguments) highest = std::max(highest, run.IntOf(other));
  return highest;
}

RuleValue Magnitude(RuleRun& run, Arguments arguments) {
  const int64_t value = run.IntOf(arguments[0]);
  // The magnitude of the smallest int64 does not fit; the largest number replaces it.
  return value < 0 ? -std::max(value, -INT64_MAX) : value;
}

RuleValue Total(RuleRun& run, Arguments arguments) {
  int64_t total = 0;
  for (const int64_t one : run.ShapeOf(arguments[0])) {
    if (__builtin_add_overflow(total, one, &total)) run.FailAsTooLarge();
  }
  return total;
}

RuleValue Product(RuleRun& run, Arguments arguments) {
  int64_t product = 1;
  for (const int64_t one : run.ShapeOf(arguments[0])) {
    if (__builtin_mul_overflow(product, one, &product)) run.FailAsTooLarge();
  }
  return product;
}

RuleValue All(RuleRun& run, Arguments arguments) {
  const Shape& all = run.ShapeOf(arguments[0]);
  return int64_t{std::find(all.begin(), all.end(), 0) == all.end()};
}

// Shapes and axes.

RuleValue CallCheckShape(RuleRun& run, Arguments arguments) {
  const Shape& shape = run.ShapeOf(arguments[0]);
  run.Fail(CheckShape(shape));
  return shape;
}

RuleValue CallNormalizeAxis(RuleRun& run, Arguments arguments) {
  return run.OrFail(NormalizeAxis(run.IntOf(arguments[0]), run.IntOf(arguments[1])));
}

RuleValue CallNormalizeAxes(RuleRun& run, Arguments arguments) {
  return run.OrFail(NormalizeAxes(run.ShapeOf(arguments[0]), run.IntOf(arguments[1])));
}

RuleValue CheckAxes(RuleRun& run, Arguments arguments) {
  for (const int64_t axis : run.ShapeOf(arguments[0])) {
    run.Fail(NormalizeAxis(axis, run.IntOf(arguments[1])).status());
  }
  return {};
}

RuleValue Broadcast(RuleRun& run, Arguments arguments) {
  return run.OrFail(BroadcastShapes(run.As<Shapes>(arguments[0])));
}

RuleValue DoBroadcast(RuleRun& run, Arguments arguments) {
  return int64_t{BroadcastShapes({run.ShapeOf(arguments[0]), run.ShapeOf(arguments[1])}).ok()};
}

RuleValue BroadcastsTo(RuleRun& run, Arguments arguments) {
  const Shape& target = run.ShapeOf(arguments[1]);
  const auto together = BroadcastShapes({run.ShapeOf(arguments[0]), target});
  return int64_t{together.ok() && *together == target};
}

// Operands.

RuleValue Given(RuleRun&, Arguments arguments) {
  return int64_t{!std::holds_alternative<std::monostate>(arguments[0])};
}

// Returns operand i as shown in messages.
RuleValue Described(RuleRun& run, Arguments arguments) {
  const size_t i = run.IntOf(arguments[2]);
  std::string_view name = run.query().op.operands[i];
  if (name.back() == '?') name.remove_suffix(1);
  return StrCat(name, " ", ToString(run.query().shapes[i]));
}

RuleValue IsOptional(RuleRun& run, Arguments arguments) {
  return int64_t{run.query().op.operands[run.IntOf(arguments[1])].back() == '?'};
}

RuleValue OperandNamed(RuleRun& run, Arguments arguments) {
  const auto& names = run.query().op.operands;
  const auto found = std::find(names.begin(), names.end(), run.As<std::string>(arguments[2]));
  return run.query().shapes[found - names.begin()];
}

// Comparisons of numbers that may be variables in the client, which knows only their bounds.

RuleValue SurelyMore(RuleRun& run, Arguments arguments) {
  return int64_t{run.IntOf(arguments[0]) > run.IntOf(arguments[1])};
}

RuleValue Largest(RuleRun& run, Arguments arguments) { return run.IntOf(arguments[0]); }

RuleValue CallIsSpec(RuleRun& run, Arguments arguments) {
  return int64_t{ir::IsSpec(run.ShapeOf(arguments[0]), run.IntOf(arguments[1]))};
}

// Windows.

RuleValue CallSpatialRank(RuleRun& run, Arguments) {
  return static_cast<int64_t>(SpatialRank(run.query().op));
}

RuleValue CallWindowPositions(RuleRun& run, Arguments arguments) {
  return run.OrFail(WindowPositions(run.IntOf(arguments[0]), run.IntOf(arguments[1]),
                                    run.IntOf(arguments[2]), run.IntOf(arguments[3])));
}

RuleValue ConvolutionPositions(RuleRun& run, Arguments arguments) {
  auto sliding = ConvolutionSliding(run.ShapeOf(arguments[0]), run.ShapeOf(arguments[1]),
                                    run.query().attributes);
  return run.OrFail(std::move(sliding)).positions;
}

RuleValue TransposedSizes(RuleRun& run, Arguments arguments) {
  auto spreading = TransposedSpreading(run.ShapeOf(arguments[0]), run.ShapeOf(arguments[1]),
                                       run.query().attributes);
  return run.OrFail(std::move(spreading)).result;
}

RuleValue PoolPositions(RuleRun& run, Arguments arguments) {
  return run.OrFail(PoolSliding(run.ShapeOf(arguments[0]), run.query().attributes)).positions;
}

RuleValue EinsumShape(RuleRun& run, Arguments arguments) {
  auto equation = ParseEinsum(run.As<std::string>(arguments[0]), run.query().shapes);
  if (equation.ok()) return equation->ResultShape();
  run.Fail(equation.status());
  return {};
}

constexpr RuleFunction kFunctions[] = {{"len", Len, 1, 1, true},
                                       {"tuple", AsTuple, 1, 1, true},
                                       {"sorted", Sorted, 1, 1, true},
                                       {"range", Range, 1, 2, true},
                                       {"min", Least, 2, kAnyNumber, true},
                                       {"max", Most, 2, kAnyNumber, true},
                                       {"abs", Magnitude, 1, 1, true},
                                       {"sum", Total, 1, 1, true},
                                       {"all", All, 1, 1, true},
                                       {"prod", Product, 1, 1},
                                       {"check_shape", CallCheckShape, 1, 1},
                                       {"normalize_axis", CallNormalizeAxis, 2, 2},
                                       {"normalize_axes", CallNormalizeAxes, 2, 2},
                                       {"check_axes", CheckAxes, 2, 2},
                                       {"broadcast", Broadcast, 1, 1},
                                       {"do_broadcast", DoBroadcast, 2, 2},
                                       {"broadcasts_to", BroadcastsTo, 2, 2},
                                       {"given", Given, 1, 1},
                                       {"described", Described, 3, 3},
                                       {"is_optional", IsOptional, 2, 2},
                                       {"operand_named", OperandNamed, 3, 3},
                                       {"surely_more", SurelyMore, 2, 2},
                                       {"largest", Largest, 1, 1},
                                       {"is_spec", CallIsSpec, 2, 2},
                                       {"spatial_rank", CallSpatialRank, 1, 1},
                                       {"window_positions", CallWindowPositions, 4, 4},
                                       {"convolution_positions", ConvolutionPositions, 3, 3},
                                       {"transposed_sizes", TransposedSizes, 3, 3},
                                       {"pool_positions", PoolPositions, 2, 2},
                                       {"einsum_shape", EinsumShape, 2, 2}};

}  // namespace

const RuleFunction* FindRuleFunction(std::string_view name) {
  for (const RuleFunction& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

absl::Span<const RuleFunction> RuleFunctions() { return kFunctions; }

}  // namespace kiln::ops
