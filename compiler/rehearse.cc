#include "compiler/rehearse.h"

#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "compiler/compile_kernels.h"
#include "compiler/graph/text.h"
#include "compiler/kernel/kernel.h"
#include "compiler/machine_codes.h"
#include "compiler/pipeline.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/space.h"
#include "proto/digest/sha256.h"

namespace kiln::compiler {
namespace {

// Both texts were printed by this compiler.
absl::Status Unreadable(const absl::Status& why) {
  return absl::InternalError(absl::StrCat("its text cannot be parsed: ", why.message()));
}

class NoImages : public workers::KernelCompiler {
 public:
  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob&) override {
    return drivers::KernelImage();
  }
};

// The schedules that this process has survived. The candidates of a search have most kernels in
// common. Thread-safe.
class SurvivedKernels : public KernelCache {
 public:
  static SurvivedKernels& OfThisProcess() {
    static auto* const survived = new SurvivedKernels;
    return *survived;
  }

  std::optional<std::string> Get(const std::string& key) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto found = kernels_.find(Sha256Hex(key));
    return found == kernels_.end() ? std::nullopt : std::optional(found->second);
  }
  void Put(const std::string& key, const std::string& value) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (kernels_.size() >= kKernelsMax) kernels_.clear();
    kernels_[Sha256Hex(key)] = value;
  }

 private:
  // Each takes some KiB.
  static constexpr size_t kKernelsMax = 4096;

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::string> kernels_ ABSL_GUARDED_BY(mutex_);
};

absl::Status RehearseChoices(const workers::Rehearsal& rehearsal, const drivers::Target& target) {
  const absl::StatusOr<const codegen::MachineCode*> machine = FindMachineCode(target.architecture);
  if (!machine.ok()) return machine.status();
  const absl::StatusOr<graph::Graph> part = graph::Parse(rehearsal.graph);
  if (!part.ok()) return Unreadable(part.status());
  NoImages no_images;
  Options options;
  options.cache = &SurvivedKernels::OfThisProcess();
  options.kernel_compiler = &no_images;
  options.disabled_passes = rehearsal.disabled_passes;
  options.choices = [&](const std::string&, const drivers::Target&) { return rehearsal.choices; };
  std::vector<PassReport> reports;
  const absl::StatusOr<PassState> state =
      RunPasses(*part, target, {.first = "normalize"}, options, &reports);
  if (!state.ok()) return state.status();
  if (state->choices.key != rehearsal.key)
    return absl::InternalError("the text of the graph gives another graph");
  return CompileKernels(state->partition, **machine, target, options, &reports).status();
}

// A kernel's space takes far longer to make than one setting to write, and a search asks for one
// setting after another.
struct KernelSpace {
  std::string text;
  drivers::Target target;
  ir::Context context;
  kernel::Kernel kernel;
  std::optional<search::Space> space;
};

absl::StatusOr<const search::Space*> SpaceOf(const workers::KernelJob& job) {
  thread_local std::unique_ptr<KernelSpace> last;
  const bool is_known = last != nullptr && last->text == job.kernel &&
                        last->target.CacheKey() == job.target.CacheKey();
  if (is_known) return &*last->space;
  last = nullptr;
  auto next = std::make_unique<KernelSpace>();
  next->text = job.kernel;
  next->target = job.target;
  auto kernel = kernel::ParseKernel(job.kernel, next->context);
  if (!kernel.ok()) return Unreadable(kernel.status());
  next->kernel = *std::move(kernel);
  next->space.emplace(next->kernel, next->target, search::MachineOf(next->target));
  last = std::move(next);
  return &*last->space;
}

absl::Status RehearseSetting(const workers::KernelJob& job) {
  const auto space = SpaceOf(job);
  if (!space.ok()) return space.status();
  search::Setting setting = (*space)->heuristic();
  if (!job.rehearsal->setting.empty()) {
    const auto parsed = search::ParseSetting(job.rehearsal->setting);
    if (!parsed.ok()) return parsed.status();
    std::vector<std::string> ignored;
    setting = (*space)->Complete(parsed->setting, &ignored);
  }
  const auto schedule = (*space)->Write(setting);
  if (!schedule.ok()) return schedule.status();
  // A search asks for the rest of those that can be written.
  (*space)->FeaturesOf(*schedule).status().IgnoreError();
  (*space)->Estimate(setting);
  (*space)->Neighbours(setting);
  return absl::OkStatus();
}

}  // namespace

absl::Status Rehearse(const workers::KernelJob& job) {
  return job.rehearsal->graph.empty() ? RehearseSetting(job)
                                      : RehearseChoices(*job.rehearsal, job.target);
}

}  // namespace kiln::compiler
