#include "compiler/pipeline.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/simplify.h"
#include "compiler/graph/verify.h"
#include "compiler/graph/widen.h"
#include "compiler/pass_timer.h"

namespace kiln::compiler {
namespace {

absl::StatusOr<graph::Graph> RunWiden(const graph::Graph& graph) { return graph::Widen(graph); }

absl::StatusOr<graph::Graph> RunSimplify(const graph::Graph& graph) {
  return graph::Simplify(graph);
}

constexpr GraphPass kPasses[] = {
    {"differentiate", false, autodiff::Differentiate},
    {"widen", false, RunWiden},
    {"simplify", true, RunSimplify},
};

std::string PassNames() {
  return absl::StrJoin(kPasses, ", ",
                       [](std::string* out, const GraphPass& pass) { out->append(pass.name); });
}

const GraphPass* FindPass(std::string_view name) {
  const auto* pass = std::find_if(std::begin(kPasses), std::end(kPasses),
                                  [&](const GraphPass& p) { return p.name == name; });
  return pass == std::end(kPasses) ? nullptr : pass;
}

absl::Status CheckNames(std::string_view last, const Options& options) {
  if (!last.empty() && FindPass(last) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no pass \"", std::string(last), "\"; the passes are ", PassNames()));
  }
  for (const std::string& name : options.disabled_passes) {
    const GraphPass* pass = FindPass(name);
    if (pass == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot switch off \"", name, "\": the passes are ", PassNames()));
    }
    if (!pass->optional) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot switch off \"", name, "\": the result would be wrong without it"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyAfter(std::string_view pass, const graph::Graph& graph) {
  const absl::Status status = graph::Verify(graph);
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("after pass ", std::string(pass), ": ", status.message()));
}

}  // namespace

absl::Span<const GraphPass> GraphPasses() { return kPasses; }

absl::StatusOr<graph::Graph> RunGraphPasses(const graph::Graph& graph, std::string_view last,
                                            const Options& options, std::vector<PassTime>* times) {
  if (absl::Status names = CheckNames(last, options); !names.ok()) return names;
  graph::Graph current = graph;
  for (const GraphPass& pass : kPasses) {
    const auto& disabled = options.disabled_passes;
    if (std::find(disabled.begin(), disabled.end(), pass.name) == disabled.end()) {
      PassTimer timer(std::string(pass.name), times);
      absl::StatusOr<graph::Graph> next = pass.run(current);
      if (!next.ok()) return next.status();
      current = *std::move(next);
      if (options.verify) {
        if (absl::Status legal = VerifyAfter(pass.name, current); !legal.ok()) return legal;
      }
      if (options.dump) options.dump(std::string(pass.name), graph::Print(current));
    }
    if (pass.name == last) break;
  }
  return current;
}

}  // namespace kiln::compiler
