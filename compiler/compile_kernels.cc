#include "compiler/compile_kernels.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/cached_kernel.h"
#include "compiler/codegen/codegen.h"
#include "compiler/kernel/in_place.h"
#include "compiler/kernel/lower.h"
#include "compiler/parallel_for.h"
#include "compiler/pass_timer.h"
#include "compiler/proof/prove.h"
#include "compiler/rehearse.h"
#include "proto/digest/sha256.h"

namespace kiln::compiler {
namespace {

// The target of the kernels, and its code generator.
struct Machine {
  const codegen::MachineCode& code;
  const drivers::Target& target;
};

// A lowered kernel with the context of its nodes. Shared by the group and, for its source, by the
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
    // Each has its own context, since contexts are not thread-safe.
    lowered[i] = std::make_shared<Lowered>();
    Lowered& result = *lowered[i];
    result.kernel = kernel::Lower(partition, static_cast<int>(i), result.context);
    if (result.kernel.ok()) result.text = kernel::Print(result.kernel->kernel);
  });
  return lowered;
}

// Joins one text per kernel, each below the kernel's name.
template <typename TextOf>
std::string Join(const std::vector<std::shared_ptr<Lowered>>& lowered, const TextOf& text_of) {
  std::string text;
  for (size_t i = 0; i < lowered.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "# " : "\n# ", lowered[i]->kernel->kernel.name, "\n",
                    text_of(i, *lowered[i]));
  }
  return text;
}

// A kernel before emission: found in the cache, or with its chosen schedule.
struct Scheduled {
  std::string key;
  std::optional<CompiledKernel> known;
  schedule::Schedule schedule;
  std::string setting;  // from Options::tuned; empty: none
  // As in CompiledKernel. Without a refusal, `schedule` is made from the setting.
  std::string setting_refusal;
  absl::Status no_worker;  // in which the setting could be tried
  std::string setting_ignored;
  // The time taken so far; `reading` is part of `time`.
  absl::Duration reading = absl::ZeroDuration();
  absl::Duration time = absl::ZeroDuration();
};

absl::Status RehearseSetting(const Lowered& lowered, const std::string& setting,
                             const Machine& machine, const Options& options) {
  if (options.kernel_compiler == nullptr) return absl::OkStatus();
  return options.kernel_compiler
      ->Compile(
          RehearsalOfSetting(lowered.kernel->kernel.name, lowered.text, setting, machine.target))
      .status();
}

// Sets the schedule of a kernel: that of its setting if it has one that can be used, else the
// heuristic's.
void Choose(const Lowered& lowered, const Machine& machine, const Options& options,
            Scheduled* scheduled) {
  const kernel::Kernel& kernel = lowered.kernel->kernel;
  absl::Status rehearsed;
  if (!scheduled->setting.empty())
    rehearsed = RehearseSetting(lowered, scheduled->setting, machine, options);
  if (!rehearsed.ok()) {
    scheduled->setting_refusal = std::string(rehearsed.message());
    if (!IsOfDecision(rehearsed)) scheduled->no_worker = rehearsed;
  } else if (!scheduled->setting.empty()) {
    std::vector<std::string> ignored;
    absl::StatusOr<schedule::Schedule> tuned =
        machine.code.choose_by(kernel, machine.target, scheduled->setting, &ignored);
    scheduled->setting_ignored = absl::StrJoin(ignored, "; ");
    if (tuned.ok()) {
      scheduled->schedule = *std::move(tuned);
      return;
    }
    scheduled->setting_refusal = std::string(tuned.status().message());
  }
  scheduled->schedule = machine.code.choose(kernel, machine.target);
}

Scheduled FetchOrSchedule(const Lowered& lowered, const Machine& machine, const Options& options,
                          bool plain) {
  const absl::Time start = TimeOf(options);
  Scheduled scheduled;
  if (options.tuned && !plain) {
    scheduled.setting = options.tuned(lowered.text, machine.target).value_or("");
  }
  scheduled.key =
      CacheKey(lowered.text, machine.target, options.disabled_passes, scheduled.setting);
  if (options.cache != nullptr) {
    if (std::optional<std::string> bytes = options.cache->Get(scheduled.key)) {
      scheduled.known = DecodeCachedKernel(*bytes);
    }
  }
  scheduled.reading = TimeOf(options) - start;
  // A cached kernel includes its schedule.
  if (!scheduled.known && !plain) Choose(lowered, machine, options, &scheduled);
  scheduled.time = TimeOf(options) - start;
  return scheduled;
}

// The times of a kernel's emission.
struct EmitTimes {
  absl::Duration waiting = absl::ZeroDuration();  // for a worker
  absl::Duration compiling = absl::ZeroDuration();
  absl::Duration writing = absl::ZeroDuration();  // to the cache
};

absl::StatusOr<drivers::KernelImage> MakeImage(const Lowered& lowered,
                                               const schedule::Schedule& schedule,
                                               const Machine& machine, const Options& options,
                                               EmitTimes* times) {
  const kernel::Kernel& kernel = lowered.kernel->kernel;
  const absl::Time start = TimeOf(options);
  absl::Time begun = start;
  absl::StatusOr<drivers::KernelImage> image = drivers::KernelImage();
  if (options.kernel_compiler == nullptr) {
    image = codegen::CompileKernel(machine.code, kernel, schedule, machine.target);
  } else {
    workers::KernelJob job{kernel.name, lowered.text, schedule::Print(schedule), machine.target};
    job.on_begin = [&] { begun = TimeOf(options); };
    image = options.kernel_compiler->Compile(job);
  }
  times->waiting += begun - start;
  times->compiling += TimeOf(options) - begun;
  return image;
}

// Keeps the error's payloads: in one of them a vendor's compiler says how large blocks may be.
absl::Status ErrorOf(const kernel::Kernel& kernel, const absl::Status& error) {
  absl::Status named(error.code(), absl::StrCat("kernel ", kernel.name, ": ", error.message()));
  error.ForEachPayload([&named](absl::string_view url, const absl::Cord& payload) {
    named.SetPayload(url, payload);
  });
  return named;
}

// If a schedule made from a setting cannot be compiled, the heuristic's replaces it. If the proof
// refuses a schedule of the heuristic, the plain schedule replaces it: slow, but never wrong.
absl::StatusOr<CompiledKernel> Emit(const Lowered& lowered, const Scheduled& scheduled,
                                    const Machine& machine, const Options& options,
                                    EmitTimes* times) {
  if (!scheduled.no_worker.ok()) return ErrorOf(lowered.kernel->kernel, scheduled.no_worker);
  CompiledKernel compiled;
  compiled.setting = scheduled.setting;
  compiled.setting_refusal = scheduled.setting_refusal;
  compiled.setting_ignored = scheduled.setting_ignored;
  schedule::Schedule schedule = scheduled.schedule;
  absl::StatusOr<drivers::KernelImage> image =
      MakeImage(lowered, schedule, machine, options, times);
  const bool is_tuned = !compiled.setting.empty() && compiled.setting_refusal.empty();
  if (is_tuned && IsOfDecision(image.status())) {
    compiled.setting_refusal = std::string(image.status().message());
    schedule = machine.code.choose(lowered.kernel->kernel, machine.target);
    image = MakeImage(lowered, schedule, machine, options, times);
  }
  if (proof::IsDisproof(image.status()) && !schedule.directives.empty()) {
    compiled.refused_schedule = schedule::Print(schedule);
    compiled.refusal = std::string(image.status().message());
    schedule = {};
    image = MakeImage(lowered, schedule, machine, options, times);
  }
  compiled.schedule = schedule::Print(schedule);
  if (!image.ok()) return ErrorOf(lowered.kernel->kernel, image.status());
  compiled.image = *std::move(image);
  return compiled;
}

absl::StatusOr<CompiledKernel> Finish(const std::shared_ptr<const Lowered>& lowered,
                                      Scheduled scheduled, const Machine& machine,
                                      const Options& options, EmitTimes* times) {
  const absl::Time start = TimeOf(options);
  absl::StatusOr<CompiledKernel> compiled =
      scheduled.known ? absl::StatusOr<CompiledKernel>(*std::move(scheduled.known))
                      : Emit(*lowered, scheduled, machine, options, times);
  if (!compiled.ok()) return compiled.status();
  compiled->ir = lowered->text;
  compiled->in_place = kernel::FindInPlace(lowered->kernel->kernel);
  // Written only on request.
  compiled->source = [lowered, text = compiled->schedule]() -> absl::StatusOr<std::string> {
    absl::StatusOr<schedule::Schedule> schedule = schedule::Parse(text);
    if (!schedule.ok()) return schedule.status();
    return codegen::Source(lowered->kernel->kernel, *schedule);
  };
  compiled->digest = Sha256Hex(lowered->text);
  // A kernel from the cache keeps its original compile time.
  if (!compiled->from_cache) {
    const absl::Time made = TimeOf(options);
    compiled->compile_seconds = absl::ToDoubleSeconds(scheduled.time + (made - start));
    // An image that the finisher could not finish is not cached, since it may succeed another time.
    const bool whole = machine.target.finisher.driver.empty() || !compiled->image.finished.empty();
    if (options.cache != nullptr && whole)
      options.cache->Put(scheduled.key, EncodeCachedKernel(*compiled));
    times->writing += TimeOf(options) - made;
  }
  if (options.keep_assembly) {
    absl::StatusOr<std::string> assembly = Disassemble(compiled->image, machine.target);
    if (!assembly.ok()) return assembly.status();
    compiled->assembly = *std::move(assembly);
  }
  return compiled;
}

// Fills `set->groups` and returns, for each distinct kernel, the group that represents it.
absl::StatusOr<std::vector<int>> Deduplicate(const std::vector<std::shared_ptr<Lowered>>& lowered,
                                             KernelSet* set) {
  // The text identifies the kernel; the cache's key contains it too.
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

using LoweredKernels = std::vector<std::shared_ptr<Lowered>>;

// Returns the distinct kernels of the partition.
absl::StatusOr<LoweredKernels> RunLower(const partition::Partition& partition,
                                        const Options& options, KernelSet* set,
                                        std::vector<PassReport>* reports) {
  PassTimer timer("lower", options, reports);
  LoweredKernels lowered = LowerGroups(partition, options);
  absl::StatusOr<std::vector<int>> representatives = Deduplicate(lowered, set);
  if (!representatives.ok()) return representatives.status();
  LoweredKernels distinct;
  for (const int group : *representatives) distinct.push_back(std::move(lowered[group]));
  timer.Stop();
  if (timer.dumped()) {
    timer.SetText(Join(distinct, [](size_t, const Lowered& one) { return one.text; }));
  }
  return distinct;
}

std::vector<Scheduled> RunSchedule(const LoweredKernels& lowered, const Machine& machine,
                                   const Options& options, std::vector<PassReport>* reports) {
  PassTimer timer("schedule", options, reports);
  std::vector<Scheduled> scheduled(lowered.size());
  ParallelFor(lowered.size(), options.threads, [&](size_t i) {
    scheduled[i] = FetchOrSchedule(*lowered[i], machine, options, timer.disabled());
  });
  timer.Stop();
  const int threads = ThreadsFor(lowered.size(), options.threads);
  absl::Duration reading = absl::ZeroDuration(), choosing = absl::ZeroDuration();
  for (const Scheduled& one : scheduled) {
    reading += one.reading;
    choosing += one.time - one.reading;
  }
  timer.AddPart("read_cache", reading, threads);
  timer.AddPart("choose", choosing, threads);
  if (timer.dumped()) {
    timer.SetText(Join(lowered, [&](size_t i, const Lowered&) {
      return scheduled[i].known ? scheduled[i].known->schedule
                                : schedule::Print(scheduled[i].schedule);
    }));
  }
  return scheduled;
}

absl::Status RunEmit(const LoweredKernels& lowered, std::vector<Scheduled> scheduled,
                     const Machine& machine, const Options& options, KernelSet* set,
                     std::vector<PassReport>* reports) {
  PassTimer timer("emit", options, reports);
  std::vector<absl::StatusOr<CompiledKernel>> compiled(lowered.size(),
                                                       absl::UnknownError("not compiled"));
  std::vector<EmitTimes> times(lowered.size());
  const auto tell = [&](int found, int made) {
    if (options.on_kernels) options.on_kernels(found, made);
  };
  tell(static_cast<int>(lowered.size()), 0);
  ParallelFor(lowered.size(), options.threads, [&](size_t i) {
    compiled[i] = Finish(lowered[i], std::move(scheduled[i]), machine, options, &times[i]);
    tell(0, 1);
  });
  // The first error in the kernels' order, independent of which thread failed first.
  for (absl::StatusOr<CompiledKernel>& kernel : compiled) {
    if (!kernel.ok()) return kernel.status();
    set->kernels.push_back(*std::move(kernel));
  }
  timer.Stop();
  EmitTimes all;
  for (const EmitTimes& one : times) {
    all.waiting += one.waiting;
    all.compiling += one.compiling;
    all.writing += one.writing;
  }
  const int threads = ThreadsFor(lowered.size(), options.threads);
  timer.AddPart("wait_for_worker", all.waiting, threads);
  timer.AddPart("compile", all.compiling, threads);
  timer.AddPart("write_cache", all.writing, threads);
  if (!timer.dumped()) return absl::OkStatus();
  std::vector<std::string> texts;
  for (const CompiledKernel& kernel : set->kernels) {
    absl::StatusOr<std::string> assembly = Disassemble(kernel.image, machine.target);
    if (!assembly.ok()) return assembly.status();
    texts.push_back(*std::move(assembly));
  }
  timer.SetText(Join(lowered, [&](size_t i, const Lowered&) { return texts[i]; }));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelSet> CompileKernels(const partition::Partition& partition,
                                         const codegen::MachineCode& code,
                                         const drivers::Target& target, const Options& options,
                                         std::vector<PassReport>* reports) {
  const Machine machine{code, target};
  KernelSet set;
  const absl::StatusOr<LoweredKernels> lowered = RunLower(partition, options, &set, reports);
  if (!lowered.ok()) return lowered.status();
  std::vector<Scheduled> scheduled = RunSchedule(*lowered, machine, options, reports);
  absl::Status status = RunEmit(*lowered, std::move(scheduled), machine, options, &set, reports);
  if (!status.ok()) return status;
  return set;
}

}  // namespace kiln::compiler
