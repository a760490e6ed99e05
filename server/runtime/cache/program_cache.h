// All programs in memory, shared by all sessions or separate for each user. Compiles missing
// programs, each once.
#ifndef KILN_SERVER_RUNTIME_CACHE_PROGRAM_CACHE_H_
#define KILN_SERVER_RUNTIME_CACHE_PROGRAM_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/graph/graph.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/compile_threads.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/cache/program_compiler.h"
#include "server/runtime/cache/program_request.h"
#include "server/runtime/cache/programs_by_digest.h"
#include "server/runtime/cache/programs_by_source.h"
#include "server/runtime/cache/variable_programs.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/program/bound_program.h"
#include "server/runtime/program/program.h"

namespace kiln::runtime {

// Thread-safe. There are two look-ups: by the source that the client sent, device and bindings,
// which needs no further work (ProgramsBySource); then by the digest of the canonical graph, which
// finds the same graph written differently (ProgramsByDigest).
//
// A graph with variables is compiled once for all their values (VariablePrograms). If there is no
// such program, or it is not right for a binding, the graph is compiled for that binding only.
//
// Only `by_source_` decides how long programs live: ProgramsByDigest keeps none, and a source's
// VariablePrograms are destroyed with its last entry. `mutex_` guards `by_source_`; while it is
// held, no other part is called except the threads' queue.
class ProgramCache {
 public:
  struct Options : ProgramCompiler::Options {
    CompileThreads::Options threads;
    // False: each user has separate programs and kernels, so that compile times do not reveal what
    // others have compiled.
    bool shared = true;
    int idle_programs_max = 512;  // not named by a session; the least recently used are dropped
    // Bindings for which a program for all values is known to be right. The least recently used are
    // dropped first.
    int idle_bindings_max = 1 << 15;
  };

  explicit ProgramCache(Options options);
  // Waits for the compilations under way.
  ~ProgramCache();

  // The settings of programs that are asked for now.
  SettingsChange settings() const { return settings_.load(std::memory_order_acquire); }

  // `settings`: of the program's kernels. An earlier value than settings() gives exactly the
  // program that was given then, compiled again if necessary.
  //
  // Never returns null. RESOURCE_EXHAUSTED, in addition to the compiler's errors, if too many of
  // the user's programs are queued for compilation (CompileThreads). `name` is remembered if this
  // is the first request. The host memory of compiling and of the program is charged to `account`,
  // if not null. `first_call` continues here, or a new one begins, if the program is missing.
  std::shared_ptr<ProgramFuture> Get(
      std::shared_ptr<const GraphSource> source, const Bindings& bindings, ManagedDevice& device,
      const std::string& name, std::shared_ptr<memory::Account> account = nullptr,
      Admission admission = Admission::kAsked, std::shared_ptr<FirstCall> first_call = nullptr,
      SettingsChange settings = kNewestSettings) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same on several devices: one for each place of the graph's mesh, row-major, without
  // repetition. INVALID_ARGUMENT if the graph's mesh has another number of places.
  std::shared_ptr<ProgramFuture> Get(std::shared_ptr<const GraphSource> source,
                                     const Bindings& bindings, std::vector<ManagedDevice*> devices,
                                     const std::string& name,
                                     std::shared_ptr<memory::Account> account = nullptr,
                                     Admission admission = Admission::kAsked,
                                     std::shared_ptr<FirstCall> first_call = nullptr,
                                     SettingsChange settings = kNewestSettings)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks a graph whose variables are not bound yet, on a compiling thread, which calls `done`
  // with the result.
  void Check(std::shared_ptr<const GraphSource> source, std::shared_ptr<memory::Account> account,
             std::function<void(absl::Status)> done, Admission admission = Admission::kAsked);

  // Drops the least recently used programs that no session names any more, until `bytes` of host
  // memory are freed. With a name, only programs that this user has asked for.
  void Reclaim(int64_t bytes, const std::string& user = "") ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops programs that no session named at any call of this method within the last `limit`.
  void DropUnused(absl::Time now, absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);

  // Call after Options::tuned has changed: until then it is asked for the settings before. The next
  // definition of a graph with a kernel that now has another setting compiles anew; sessions keep
  // the programs that they have.
  void DropOutdated() ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes compilations that have not begun fail with UNAVAILABLE.
  void StopCompiling() { threads_.Stop(); }

  // Returns the programs in memory, oldest first.
  std::vector<std::shared_ptr<Program>> List() const { return by_digest_.List(); }
  // Finds a program by its digest (or the key of its source) or an unambiguous prefix. NOT_FOUND,
  // or INVALID_ARGUMENT if it is ambiguous.
  absl::StatusOr<std::shared_ptr<Program>> Find(const std::string& prefix) const {
    return by_digest_.Find(prefix);
  }
  // The number of programs in memory or being compiled.
  int64_t size() const { return by_digest_.size(); }

 private:
  using Result = absl::StatusOr<std::shared_ptr<const BoundProgram>>;
  struct Request : ProgramRequest {
    std::shared_ptr<ProgramFuture> future;
    std::shared_ptr<VariablePrograms> variables;  // of its source
    int64_t settings_changes = 0;                 // settings_changes_ when it began
  };

  // Called when another account asks for a program that is compiling: it is made in the turn of
  // whichever user comes first.
  void Join(ProgramsBySource::Entry& entry, const std::shared_ptr<memory::Account>& account,
            Admission admission) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Schedule(const memory::Account* account, Admission admission,
                        std::function<void()> task);
  // Returns a task that compiles the first time it is called.
  std::function<void()> Task(Request request);
  void Compile(const Request& request);
  // Compiles a program for these bindings only.
  void CompileAlone(const Request& request, const graph::Graph& graph);
  // Uses the source's program for all values if there is one and it is right for the request's
  // values.
  void BindOrCompile(const Request& request, const VariablePrograms::Result& program);
  // Answers the request. If the payer lacks the host memory, schedules the compilation again at the
  // expense of the next account that waits. `shared`: the program serves other bindings, too.
  void Finish(const Request& request, Result result, bool shared) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the request's entry, which is not kept if settings have changed since the request began
  // and the program has old ones. Returns false, without a change, if settings change meanwhile.
  // Sets `next` to the account for which the compilation is scheduled again, if there is one.
  bool TryEnd(const Request& request, const Result& result, bool shared, Payer* next)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // If the variable counts up, binds the values that will be asked for next.
  void BindAhead(const Request& request, const VariableProgram& program)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropOutdated(const std::vector<std::shared_ptr<Program>>& programs)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Finds the entry for the request, or sets how it is to be made.
  ProgramsBySource::Entry* Find(Request* request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Knows(const ProgramsBySource::Key& key) ABSL_LOCKS_EXCLUDED(mutex_);

  metrics::Metrics* const metrics_;
  const FirstCall::Now now_;
  const bool shared_;
  ProgramCompiler compiler_;
  ProgramsByDigest by_digest_;
  // Changes with mutex_ held.
  std::atomic<SettingsChange> settings_;
  absl::Mutex mutex_;
  ProgramsBySource by_source_ ABSL_GUARDED_BY(mutex_);
  // Counts when DropOutdated begins and when it ends. What was compiled in between may have old
  // settings, or be bound to a program that has them.
  int64_t settings_changes_ ABSL_GUARDED_BY(mutex_) = 0;
  CompileThreads threads_;  // last: its tasks use all members above
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_PROGRAM_CACHE_H_
