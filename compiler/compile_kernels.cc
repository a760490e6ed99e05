#include "compiler/compile_kernels.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/cached_kernel.h"
#include "compiler/codegen/codegen.h"
#include "compiler/digest.h"
#include "compiler/kernel/lower.h"
#include "compiler/parallel_for.h"
#include "compiler/pass_timer.h"
#include "compiler/proof/prove.h"
#include "compiler/search/heuristic.h"

namespace kiln::compiler {
namespace {

// A lowered kernel with the nodes it stands on. Shared by the group and, for its source, the
// compiled kernel.
struct Lowered {
  ir::Context context;
  absl::StatusOr<kernel::LoweredKernel> kernel = absl::UnknownError("not lowered");
  std::string text;
};

std::vector<std::shared_ptr<Lowered>> LowerGroups(const partition::Partition& partition,
                                                  const Options& options) {
  std::vector<std::shared_ptr<Lowered>> lowered(partition.groups.size());
  ParallelFor(lowered.size(), options.threads, [&](size_t i) {
    lowered[i] = std::make_shared<Lowered>();
    Lowered& result = *lowered[i];
    result.kernel = kernel::Lower(partition, static_cast<int>(i), result.context);
    if (result.kernel.ok()) result.text = kernel::Print(result.kernel->kernel);
  });
  return lowered;
}

// A schedule that the proof refuses gives way to the plain one: slow, never wrong.
absl::StatusOr<CompiledKernel> Emit(const kernel::Kernel& kernel, const drivers::Target& target,
                                    bool plain) {
  schedule::Schedule schedule = plain ? schedule::Schedule{} : search::Choose(kernel, target);
  CompiledKernel compiled;
  absl::StatusOr<drivers::KernelImage> image = codegen::CompileKernel(kernel, schedule, target);
  if (proof::IsDisproof(image.status()) && !schedule.directives.empty()) {
    compiled.refused_schedule = schedule::Print(schedule);
    compiled.refusal = std::string(image.status().message());
    schedule = {};
    image = codegen::CompileKernel(kernel, schedule, target);
  }
  compiled.schedule = schedule::Print(schedule);
  if (!image.ok()) {
    return absl::Status(image.status().code(),
                        absl::StrCat("kernel ", kernel.name, ": ", image.status().message()));
  }
  compiled.image = *std::move(image);
  return compiled;
}

absl::StatusOr<CompiledKernel> CompileOrFetch(const std::shared_ptr<const Lowered>& lowered,
                                              const drivers::Target& target,
                                              const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::string key = CacheKey(lowered->text, target, options.plain_schedule);
  std::optional<CompiledKernel> cached;
  if (options.cache != nullptr) {
    if (std::optional<std::string> bytes = options.cache->Get(key)) {
      cached = DecodeCachedKernel(*bytes);
    }
  }
  absl::StatusOr<CompiledKernel> compiled =
      cached ? absl::StatusOr<CompiledKernel>(*std::move(cached))
             : Emit(lowered->kernel->kernel, target, options.plain_schedule);
  if (!compiled.ok()) return compiled.status();
  compiled->ir = lowered->text;
  compiled->source = [lowered, text = compiled->schedule]() -> absl::StatusOr<std::string> {
    absl::StatusOr<schedule::Schedule> schedule = schedule::Parse(text);
    if (!schedule.ok()) return schedule.status();
    return codegen::Source(lowered->kernel->kernel, *schedule);
  };
  compiled->digest = Sha256Hex(lowered->text);
  if (!compiled->from_cache) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    compiled->compile_seconds = elapsed.count();
    if (options.cache != nullptr) options.cache->Put(key, EncodeCachedKernel(*compiled));
  }
  if (options.keep_assembly) {
    absl::StatusOr<std::string> assembly = Disassemble(compiled->image, target);
    if (!assembly.ok()) return assembly.status();
    compiled->assembly = *std::move(assembly);
  }
  return compiled;
}

// Fills `set->groups` and returns, for each distinct kernel, the group that represents it.
absl::StatusOr<std::vector<int>> Deduplicate(const std::vector<std::shared_ptr<Lowered>>& lowered,
                                             KernelSet* set) {
  absl::flat_hash_map<std::string_view, int> known;
  std::vector<int> representatives;
  for (size_t i = 0; i < lowered.size(); ++i) {
    if (!lowered[i]->kernel.ok()) return lowered[i]->kernel.status();
    const auto [it, is_new] =
        known.try_emplace(lowered[i]->text, static_cast<int>(representatives.size()));
    if (is_new) representatives.push_back(static_cast<int>(i));
    set->groups.push_back({it->second, lowered[i]->kernel->tensors});
  }
  return representatives;
}

}  // namespace

absl::StatusOr<KernelSet> CompileKernels(const partition::Partition& partition,
                                         const drivers::Target& target, const Options& options,
                                         std::vector<PassTime>* times) {
  KernelSet set;
  std::vector<std::shared_ptr<Lowered>> lowered;
  std::vector<int> representatives;
  {
    PassTimer timer("lower", times);
    lowered = LowerGroups(partition, options);
    absl::StatusOr<std::vector<int>> distinct = Deduplicate(lowered, &set);
    if (!distinct.ok()) return distinct.status();
    representatives = *std::move(distinct);
  }
  PassTimer timer("emit", times);
  std::vector<absl::StatusOr<CompiledKernel>> compiled(representatives.size(),
                                                       absl::UnknownError("not compiled"));
  ParallelFor(representatives.size(), options.threads, [&](size_t i) {
    compiled[i] = CompileOrFetch(lowered[representatives[i]], target, options);
  });
  for (absl::StatusOr<CompiledKernel>& kernel : compiled) {
    if (!kernel.ok()) return kernel.status();
    set.kernels.push_back(*std::move(kernel));
  }
  return set;
}

}  // namespace kiln::compiler
