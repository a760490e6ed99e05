#include "tests/full_size/sweep.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "compiler/ir/str_cat.h"
#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/search/heuristics/heuristic.h"
#include "compiler/search/testing/random_setting.h"
#include "tests/full_size/lanes.h"
#include "tests/full_size/random_schedule.h"

namespace kiln::full_size {
namespace {

// Stored as text, because a signal handler can do little more than write it (signal-safety(7)).
std::string case_in_work;

void OnCrash(int signal) {
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, case_in_work.data(), case_in_work.size());
  std::signal(signal, SIG_DFL);
  // With the default action, so that the core dump and the exit status are those of the crash.
  std::raise(signal);
}

// Returns the number of threads for which kernels are split.
int UnitsFor(std::mt19937_64& random) {
  constexpr int kUnits[] = {1, 2, 4, 16};
  return kUnits[random() % std::size(kUnits)];
}

// The comparisons of one kernel.
class Trial {
 public:
  Trial(const kernel::Kernel& kernel, ir::Context& context, const std::string& label,
        const std::string& text, const SweepOptions& options, Counts* counts)
      : kernel_(kernel),
        label_(label),
        text_(text),
        options_(options),
        counts_(*counts),
        // Seeded by the kernel's text, so that a kernel always gets the same schedules.
        random_(std::hash<std::string>()(text) ^ options.comparison.seed),
        comparison_(kernel, context, options.comparison) {}

  std::string Run() {
    SetCase("the plain schedule", {});
    const absl::Status status = comparison_.MakeReference(TargetWith(options_.lanes[0], 1));
    if (!status.ok()) return Failure(status.ToString());
    for (const int lanes : options_.lanes) {
      const drivers::Target target = TargetWith(lanes, UnitsFor(random_));
      Check("the chosen schedule", search::Choose(kernel_, target), target);
      for (int i = 0; i < options_.random_schedules; ++i) {
        const RandomSchedules drawn = RandomSchedule(kernel_, lanes, random_);
        counts_.refused += drawn.refused;
        counts_.disproved += drawn.disproved;
        ++counts_.random;
        Check("a random schedule", drawn.schedule, target);
      }
      const search::Space space(kernel_, target, search::Machine::kLanes);
      for (int i = 0; i < options_.random_settings; ++i) CheckSetting(space, target);
    }
    counts_.exact += comparison_.exact();
    counts_.sampled += !comparison_.complete();
    counts_.positive += comparison_.positive();
    counts_.elements += comparison_.compared();
    counts_.skipped += comparison_.skipped();
    return failures_;
  }

 private:
  void SetCase(const std::string& what, const schedule::Schedule& schedule) {
    case_in_work = StrCat("\n", label_, ", ", what, "\nkernel\n", text_, "schedule\n",
                          schedule::Print(schedule), "\n");
  }

  void CheckSetting(const search::Space& space, const drivers::Target& target) {
    const search::Setting setting = search::RandomSetting(space, random_);
    const schedule::Schedule schedule = *space.Write(setting);
    const std::string what = StrCat("a random setting\n", search::Print(setting));
    ++counts_.settings;
    const auto program = schedule::Apply(kernel_, schedule);
    const absl::Status proof =
        program.ok() ? proof::Prove(kernel_, schedule, *program) : program.status();
    if (proof.ok()) return Check(what, schedule, target);
    SetCase(what, schedule);
    Failure(proof.ToString());
  }

  void Check(const std::string& what, const schedule::Schedule& schedule,
             const drivers::Target& target) {
    SetCase(StrCat(what, ", ", target.limits.vector_bytes / 4, " lanes, ",
                   target.limits.compute_units, " units"),
            schedule);
    ++counts_.comparisons;
    const std::string difference = comparison_.Check(schedule, target);
    if (!difference.empty()) Failure(difference);
  }

  std::string Failure(const std::string& what) {
    ++counts_.failures;
    StrAppend(&failures_, "different: ", what, case_in_work);
    return failures_;
  }

  const kernel::Kernel& kernel_;
  const std::string& label_;
  const std::string& text_;
  const SweepOptions& options_;
  Counts& counts_;
  std::mt19937_64 random_;
  Comparison comparison_;
  std::string failures_;
};

}  // namespace

std::string Sweep::Try(const std::string& text, const std::string& label) {
  if (!seen_.insert(text).second) return "";
  ir::Context context;
  auto kernel = kernel::ParseKernel(text, context);
  if (!kernel.ok()) {
    ++counts_.failures;
    return StrCat("different: ", label, ": ", kernel.status().ToString(), "\n", text);
  }
  kernel->name = "kernel";
  ++counts_.kernels;
  return Trial(*kernel, context, label, text, options_, &counts_).Run();
}

std::string Sweep::Summary() const {
  const Counts& c = counts_;
  return StrCat(c.kernels, " kernels, ", c.comparisons, " comparisons with the plain schedule (",
                c.random, " of random schedules, ", c.settings, " of random settings, ", c.refused,
                " drafts refused, ", c.disproved, " of them by the proof), ", c.failures,
                " different; ", c.exact, " kernels without tolerance, ", c.sampled,
                " compared in parts, ", c.positive, " without negative inputs; ", c.elements,
                " elements, ", c.skipped, " without a bound");
}

void PrintCaseOnCrash() {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) std::signal(signal, OnCrash);
}

}  // namespace kiln::full_size
