#include "tests/fuzz/check_graph.h"

#include "compiler/graph/round_factors.h"
#include "compiler/graph/simplify/simplify.h"
#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"

namespace kiln::fuzz {
namespace {

// Longer messages would let a client fill the logs.
constexpr size_t kLongestMessage = 4000;

std::optional<std::string> RoundingDefect(graph::Graph graph) {
  graph.float32_matmul_precision = graph::MatmulPrecision::kHigh;
  graph::Graph rounded = graph::RoundFactors(graph);
  const absl::Status legal = graph::Verify(rounded);
  const std::string text = graph::Print(rounded);
  if (!legal.ok()) return StrCat("with rounded factors: ", legal.ToString(), "\n", text);
  rounded.float32_matmul_precision = graph::MatmulPrecision::kHigh;
  if (graph::Print(graph::RoundFactors(rounded)) == text) return std::nullopt;
  return StrCat("rounded factors are rounded again:\n", text);
}

std::optional<std::string> Defect(const graph::Graph& graph) {
  absl::Status legal = graph::Verify(graph);
  if (!legal.ok()) return legal.ToString();
  std::string text = graph::Print(graph);
  absl::StatusOr<graph::Graph> read = graph::Parse(text);
  if (!read.ok()) return StrCat("does not read back: ", read.status().ToString(), "\n", text);
  if (graph::Print(*read) != text) return StrCat("reads back as another graph:\n", text);
  graph::Graph simple = graph::Simplify(graph);
  legal = graph::Verify(simple);
  if (!legal.ok()) return StrCat("simplified: ", legal.ToString(), "\n", text);
  std::string simple_text = graph::Print(simple);
  if (graph::Print(graph::Simplify(simple)) != simple_text) {
    return StrCat("not at a fixed point:\n", simple_text);
  }
  return RoundingDefect(graph);
}

}  // namespace

Outcome CheckResult(const absl::StatusOr<graph::Graph>& result, const std::string& label_of_error) {
  if (result.ok()) return {"accepted", Defect(*result)};
  Outcome outcome{label_of_error, std::nullopt};
  bool users = result.status().code() == absl::StatusCode::kInvalidArgument ||
               result.status().code() == absl::StatusCode::kFailedPrecondition;
  if (!users || result.status().message().size() > kLongestMessage) {
    outcome.defect = result.status().ToString();
  }
  return outcome;
}

}  // namespace kiln::fuzz
