// Compiles a graph to a program loaded on its devices, with checks, metrics and log events.
#ifndef KILN_SERVER_RUNTIME_CACHE_PROGRAM_COMPILER_H_
#define KILN_SERVER_RUNTIME_CACHE_PROGRAM_COMPILER_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "server/clock/clock.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/compile_log.h"
#include "server/runtime/cache/program_request.h"
#include "server/runtime/program/program.h"
#include "server/trace/recorder.h"

namespace kiln::runtime {

using CompileFunction = std::function<absl::StatusOr<compiler::CompiledProgram>(
    const graph::Graph&, const drivers::Target&, const compiler::Options&)>;

// Thread-safe. Does not keep the programs that it makes.
class ProgramCompiler {
 public:
  struct Options {
    CompileFunction compile;
    compiler::KernelCache* kernel_cache = nullptr;       // may be null
    workers::KernelCompiler* kernel_compiler = nullptr;  // as in compiler::Options
    metrics::Metrics* metrics = nullptr;                 // not null
    Clock clock;
    trace::Recorder* trace_recorder = nullptr;  // may be null
    int kernel_threads = 1;                     // kernels of one program compiled at once
    // Programs with a longer predicted run are refused; 0: no limit.
    double run_seconds_max = 0;
    // As in compiler::Options.
    std::vector<std::string> disabled_passes;
    std::vector<std::string> dumped_passes;
    // As compiler::Options::tuned and, for the keys of graphs, choices, for a program of this owner
    // (ProgramRequest::owner), after this change of settings. May be null.
    std::function<std::optional<std::string>(const std::string& key, const drivers::Target& target,
                                             const std::string& owner, SettingsChange change)>
        tuned;
    // The number of the last change. May be null if settings never change.
    std::function<SettingsChange()> last_settings_change;
  };

  explicit ProgramCompiler(Options options) : options_(std::move(options)) {}

  // `graph` is the request's, or one for all values of its variables. It is compiled once for each
  // distinct target of its devices; in stages, once for each device. The program's host memory is
  // charged to the request's payer. If a device takes a kernel only with smaller blocks, the
  // program is compiled again with smaller blocks. If a device refuses a finished image
  // (drivers::FinishedRefused), the program is compiled again without cached images, and at last so
  // that the devices finish the images of this program themselves. RESOURCE_EXHAUSTED if the
  // program does not fit the device or the host or runs too long. Other errors are the compiler's
  // or the device's.
  absl::StatusOr<std::shared_ptr<Program>> Compile(const ProgramRequest& request,
                                                   const graph::Graph& graph,
                                                   const std::string& digest)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether Options::tuned has another setting for a kernel of the program, or other
  // choices for its graph, after this change, than the program was compiled with.
  bool IsOutdated(const Program& program, SettingsChange change) const;
  // The number of the last change; 1 if settings never change.
  SettingsChange LastSettingsChange() const;

 private:
  struct Attempt {
    int block_threads_max = 0;
    bool reads_cache = true;
    bool devices_finish = false;  // the devices finish images themselves
  };
  // Compile, except that its end is not recorded.
  absl::StatusOr<std::shared_ptr<Program>> CompileAttempts(const ProgramRequest& request,
                                                           const graph::Graph& graph,
                                                           absl::Span<ManagedDevice* const> devices,
                                                           const CompileLabel& label)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Compiles once for each target, as `attempt` says, and loads. Additional errors:
  // drivers::BlocksTooLarge, drivers::FinishedRefused.
  absl::StatusOr<std::shared_ptr<Program>> CompileFor(const Attempt& attempt,
                                                      const ProgramRequest& request,
                                                      const graph::Graph& graph,
                                                      absl::Span<ManagedDevice* const> devices,
                                                      const CompileLabel& label)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<compiler::CompiledProgram> CompileOnce(
      const ProgramRequest& request, const graph::Graph& graph, const drivers::Target& target,
      const compiler::Options& options, const CompileLabel& label) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the program could not be loaded because its blocks are too large; changes
  // `attempt` to make smaller ones if so. The registers of a thread are known only after a vendor's
  // compiler has run.
  static bool ShrinkBlocks(const absl::Status& loaded, const CompileLabel& label, Attempt* attempt);
  // Returns whether a device refused a finished image; if so, changes `attempt` to make another
  // image.
  static bool FinishAnew(const absl::Status& loaded, absl::Span<ManagedDevice* const> devices,
                         const CompileLabel& label, Attempt* attempt);
  static drivers::Target TargetOf(const Attempt& attempt, const ManagedDevice& device);
  compiler::Options CompilerOptions(const ProgramRequest& request) const;
  // Returns a span of the compilation, which lasts from `start` to now.
  trace::Span MakeSpan(trace::Kind kind, absl::Time start, const CompileLabel& label) const;
  void TracePasses(const std::vector<compiler::PassReport>& passes,
                   const CompileLabel& label) const;
  void ReportRefusals(const compiler::CompiledProgram& program, const std::string& digest) const;
  static void ReportChoices(const compiler::GraphChoices& choices, const std::string& digest);
  static void ReportSetting(const compiler::CompiledKernel& kernel, const std::string& digest);
  absl::Status CheckRunTime(const Program& program) const;
  // Returns whether the log may show the graph, which the compiler failed on.
  bool ShowsGraphOf(const std::string& digest) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::set<std::string> shown_ ABSL_GUARDED_BY(mutex_);  // digests of the graphs in the log
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_PROGRAM_COMPILER_H_
