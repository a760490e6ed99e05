#include "tests/random_graphs/trial.h"

#include <cmath>
#include <utility>

#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ops/testing/evaluate.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/random_graphs/shrink.h"
#include "tests/random_graphs/slope.h"

namespace kiln::random_graphs {
namespace {

using ops::HostTensor;

std::string Disagreement(const Subject& subject) {
  return numerics::Disagreement(subject.graph, subject.inputs, subject.tolerances);
}

absl::StatusOr<std::string> Compare(const Subject& subject) {
  return numerics::CompareWithInterpreter(subject.graph, subject.inputs, subject.tolerances);
}

// Returns a check that fails only for the same kind of fault as the subject's: if shrinking a wrong
// number leads to a refused graph, that shows nothing about the number.
Check FaultLikeThatOf(const Subject& subject) {
  const absl::StatusCode code = Compare(subject).status().code();
  return [code](const Subject& candidate) -> std::string {
    const auto difference = Compare(candidate);
    if (difference.status().code() != code) return "";
    return difference.ok() ? *difference : difference.status().ToString();
  };
}

// Prints elements, of which at least one exceeds its tolerance.
std::string Elements(const HostTensor& actual, const HostTensor& expected, double tolerance) {
  constexpr int kPrintedMax = 8;
  std::string text;
  int printed = 0;
  for (int64_t i = 0; i < expected.size() && printed < kPrintedMax; ++i) {
    const double a = actual.Number(i);
    const double e = expected.Number(i);
    if (a == e || (a != a && e != e)) continue;
    if (ir::IsFloat(expected.dtype) && std::abs(a - e) <= tolerance * (1 + std::abs(e))) continue;
    StrAppend(&text, "# element ", i, ": ", a, ", expected ", e, "\n");
    ++printed;
  }
  return text;
}

// Returns the shrunken graph, its defect, and its kernels.
std::string Report(const Subject& subject) {
  std::string text = StrCat(Print(subject), "# ", Disagreement(subject), "\n");
  if (!graph::Verify(subject.graph).ok()) return text;
  compiler::CompiledProgram program;
  const auto expected = ops::Evaluate(subject.graph.outputs, subject.inputs);
  const auto actual = numerics::RunCompiled(subject.graph, subject.inputs, &program);
  if (!expected.ok() || !actual.ok()) return text;
  for (size_t i = 0; i < expected->size(); ++i) {
    text += Elements((*actual)[i], (*expected)[i], subject.tolerances[i]);
  }
  for (const compiler::CompiledKernel& kernel : program.kernels) {
    StrAppend(&text, "kernel\n", kernel.ir, "schedule\n", kernel.schedule, "\n");
  }
  return text;
}

std::string Explain(const numerics::RandomGraph& random) {
  const auto differentiated = autodiff::Differentiate(random.graph);
  if (!differentiated.ok()) return differentiated.status().ToString();
  const Subject whole = {*differentiated, random.inputs, random.tolerances};
  if (Disagreement(whole).empty()) {
    return StrCat("only with its requests for gradients:\n",
                  Print({random.graph, random.inputs, random.tolerances}));
  }
  return Report(Shrink(whole, FaultLikeThatOf(whole)));
}

}  // namespace

Plan PlanFor(uint64_t seed) {
  Plan plan;
  plan.options.seed = seed;
  plan.options.special = seed % 16 == 5;
  plan.options.wide = seed % 8 == 3;
  plan.gradients = seed % 5 == 2 && !plan.options.special;
  plan.slopes = seed % 10 == 2 && plan.gradients;
  // Spread by a multiplicative hash (Knuth), so that every kind has all sizes.
  const auto draw = static_cast<int>((seed * 0x9E3779B97F4A7C15u) >> 40);
  plan.options.steps = plan.gradients                         ? 2 + draw % 14
                       : draw % 32 == 0 && !plan.options.wide ? 200
                                                              : 4 + draw % 20;
  if (plan.slopes) plan.options.only = ir::DType::kFloat64;
  return plan;
}

Trial TryOne(uint64_t seed) {
  const Plan plan = PlanFor(seed);
  Trial trial;
  trial.random = plan.gradients ? numerics::MakeRandomGradientGraph(plan.options)
                                : numerics::MakeRandomGraph(plan.options);
  const numerics::RandomGraph& random = trial.random;
  if (random.graph.outputs.empty()) return trial;  // no gradient that is independent of rounding
  compiler::CompiledProgram program;
  const std::string wrong =
      numerics::Disagreement(random.graph, random.inputs, random.tolerances, &program);
  trial.kernels = program.kernels.size();
  if (!wrong.empty()) trial.failure = StrCat(wrong, "\n", Explain(random));
  if (!plan.slopes || !wrong.empty()) return trial;
  if (const auto slope = SlopeDisagreement(random, seed)) {
    trial.has_slope = true;
    if (!slope->empty()) {
      trial.failure = StrCat(*slope, "\n", Print({random.graph, random.inputs, random.tolerances}));
    }
  }
  return trial;
}

}  // namespace kiln::random_graphs
