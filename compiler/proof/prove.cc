#include "compiler/proof/prove.h"

#include <optional>
#include <string>
#include <utility>

#include "compiler/ir/str_cat.h"
#include "compiler/proof/edges.h"
#include "compiler/proof/kernel_run.h"
#include "compiler/proof/program_run.h"
#include "compiler/proof/samples.h"
#include "compiler/schedule/plan.h"

namespace kiln::proof {
namespace {

constexpr absl::string_view kPayload = "kiln.disproof";
constexpr int kRounds = 18;
// Additional rounds, as long as there are stores that no round has reached.
constexpr int kMoreRounds = 96;
// Approximate number of points of a stage that a round evaluates.
constexpr int64_t kPoints = 64;

absl::Status Disproof(std::string_view why) {
  absl::Status status =
      absl::InternalError(StrCat("the scheduled loops do not compute the kernel: ", why));
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

absl::Status SameBuffers(const kernel::Kernel& kernel, const schedule::LoopProgram& program) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const kernel::Buffer& of = kernel.buffers[i];
    // The schedule decides where a local is and how much memory it takes.
    const bool global = of.memory == kernel::Memory::kGlobal;
    if (i >= program.buffers.size() || program.buffers[i].dtype != of.dtype ||
        (global && (program.buffers[i].elements != of.elements ||
                    program.buffers[i].space != schedule::Space::kGlobal))) {
      return Disproof(StrCat("buffer ", i, " has another dtype, size or place"));
    }
  }
  return absl::OkStatus();
}

// Returns an element in which the two memories differ, and the difference.
std::optional<std::pair<Element, std::string>> FindDifference(const Memory& kernel,
                                                              const Memory& program) {
  for (const auto& [element, want] : kernel) {
    const auto found = program.find(element);
    if (found == program.end()) return {{element, "is not written"}};
    if (found->second.times != want.times) {
      return {
          {element, StrCat("is written ", found->second.times, " times instead of ", want.times)}};
    }
    if (found->second.value != want.value) return {{element, "gets another value"}};
  }
  for (const auto& [element, got] : program) {
    if (!kernel.contains(element)) return {{element, "is written, but not by the kernel"}};
  }
  return std::nullopt;
}

}  // namespace

absl::Status Prove(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                   const schedule::LoopProgram& program) {
  absl::StatusOr<schedule::Plan> plan = schedule::MakePlan(kernel, schedule);
  if (!plan.ok()) return plan.status();
  if (absl::Status status = SameBuffers(kernel, program); !status.ok()) return status;
  // A fixed seed: a schedule that is refused once is always refused.
  Sampler sampler(*plan, plan->axes.size());
  KernelRun kernel_run(kernel, *plan, sampler);
  ProgramRun program_run(kernel, *plan, program);
  Edges edges(kernel, *plan, plan->axes.size());
  const int rounds = kRounds + edges.Rounds();
  for (int round = 0; round < rounds + kMoreRounds; ++round) {
    if (round >= rounds && program_run.NumUnreached() == 0) break;
    std::optional<kernel::IndexPoint> edge;
    if (round >= kRounds && round < rounds) edge = edges.Next();
    const Samples samples = edge ? sampler.At(*edge, kPoints) : sampler.Next(kPoints);
    const Memory& want = kernel_run.Run(samples, static_cast<uint64_t>(round));
    absl::StatusOr<const Memory*> got =
        program_run.Run(samples, static_cast<uint64_t>(round), round % 2 == 1);
    if (!got.ok()) return Disproof(std::string(got.status().message()));
    if (const auto difference = FindDifference(want, **got)) {
      const auto& [element, what] = *difference;
      const std::string point = kernel_run.PointOf(element, samples);
      return Disproof(StrCat("element ", element.second, " of ",
                             program.buffers[element.first].name, " ", what,
                             point.empty() ? "" : " at ", point));
    }
  }
  return absl::OkStatus();
}

bool IsDisproof(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

}  // namespace kiln::proof
