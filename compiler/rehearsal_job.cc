// Makes the jobs of rehearsals, without the compiler that executes them.
#include "compiler/graph/text.h"
#include "compiler/rehearse.h"

namespace kiln::compiler {

workers::KernelJob RehearsalOfChoices(const graph::Graph& part, const std::string& key,
                                      const std::string& choices, const drivers::Target& target,
                                      const Options& options) {
  workers::KernelJob job;
  job.name = "choices";
  job.target = target;
  job.rehearsal = {.graph = graph::Print(part),
                   .key = key,
                   .choices = choices,
                   .disabled_passes = options.disabled_passes,
                   .setting = ""};
  return job;
}

workers::KernelJob RehearsalOfSetting(const std::string& name, const std::string& kernel,
                                      const std::string& setting, const drivers::Target& target) {
  workers::KernelJob job;
  job.name = name;
  job.kernel = kernel;
  job.target = target;
  job.rehearsal.emplace();
  job.rehearsal->setting = setting;
  return job;
}

bool IsOfDecision(const absl::Status& error) {
  return !error.ok() && !absl::IsUnavailable(error) && !absl::IsCancelled(error);
}

}  // namespace kiln::compiler
