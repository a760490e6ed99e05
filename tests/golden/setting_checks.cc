#include "tests/golden/setting_checks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"

namespace kiln::golden {
namespace {

// Returns an empty text if the schedule computes the kernel, and its text is complete.
std::string Fault(const kernel::Kernel& kernel, const schedule::Schedule& schedule) {
  const std::string text = schedule::Print(schedule);
  const auto again = schedule::Parse(text);
  if (!again.ok() || schedule::Print(*again) != text) return "its text does not read back";
  const auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status().ToString();
  const absl::Status proof = proof::Prove(kernel, schedule, *program);
  return proof.ok() ? "" : proof.ToString();
}

}  // namespace

std::string FaultOf(const kernel::Kernel& kernel, const search::Space& space,
                    const search::Setting& setting, int* legal) {
  std::string fault;
  const auto schedule = space.Write(setting);
  if (schedule.ok()) {
    ++*legal;
    fault = Fault(kernel, *schedule);
    // A cost model can compare it.
    const auto features = space.FeaturesOf(*schedule);
    if (!features.ok()) fault = features.status().ToString();
    for (const double feature : features.value_or(search::Features()))
      if (!std::isfinite(feature)) fault = "a feature is no number";
  } else if (schedule.status().message().empty()) {
    fault = "it is refused without a reason";
  }
  if (fault.empty()) return "";
  return absl::StrCat(fault, "\n", search::Print(setting), kernel::Print(kernel),
                      schedule.ok() ? schedule::Print(*schedule) : "");
}

}  // namespace kiln::golden
