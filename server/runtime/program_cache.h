// Every program in memory, shared by all sessions, or by each user's; compiles those that are
// missing, each once.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_
#define KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_

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
#include "server/runtime/bound_program.h"
#include "server/runtime/compile_threads.h"
#include "server/runtime/graph_source.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program.h"
#include "server/runtime/program_compiler.h"
#include "server/runtime/program_request.h"
#include "server/runtime/programs_by_digest.h"
#include "server/runtime/programs_by_source.h"
#include "server/runtime/variable_programs.h"

namespace kiln::runtime {

// Thread-safe. Two look-ups: by what the client sent, device and bindings, which needs no work at
// all (ProgramsBySource); then by the digest of the canonical graph, which finds the same graph
// written differently (ProgramsByDigest).
//
// A graph with variables is compiled once for all their values (VariablePrograms), and where such a
// program is not right, or there is none, once for each binding.
//
// `by_source_` alone decides how long programs live: ProgramsByDigest keeps none, and a source's
// VariablePrograms go with its last entry. `mutex_` guards `by_source_`; no other part is called
// with it held but the threads' queue.
class ProgramCache {
 public:
  struct Options : ProgramCompiler::Options {
    CompileThreads::Options threads;
    // False: each user has programs and kernels of their own, so that how long one takes to be
    // compiled says nothing about what others have compiled.
    bool shared = true;
    int max_idle_programs = 512;  // programs that no session names any more; the oldest go first
    // Values at which a program for all values is known to be right; the oldest go first.
    int max_idle_bindings = 1 << 15;
  };

  explicit ProgramCache(Options options);
  // Waits for the compilations under way.
  ~ProgramCache();

  // Never null. RESOURCE_EXHAUSTED, beside the compiler's errors, if too many programs of the
  // user's wait to be compiled (CompileThreads). `name` is remembered if this is the first to ask.
  // The host memory that compiling and the program take is charged to `account`, if there is one.
  // `first_call` goes on here, or begins, if the program is missing.
  std::shared_ptr<ProgramFuture> Get(std::shared_ptr<const GraphSource> source,
                                     const Bindings& bindings, ManagedDevice& device,
                                     const std::string& name,
                                     std::shared_ptr<memory::Account> account = nullptr,
                                     Admission admission = Admission::kAsked,
                                     std::shared_ptr<FirstCall> first_call = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // On several devices: one for each place of the graph's mesh, row-major, each once.
  // INVALID_ARGUMENT if the graph's mesh has another number of places.
  std::shared_ptr<ProgramFuture> Get(std::shared_ptr<const GraphSource> source,
                                     const Bindings& bindings, std::vector<ManagedDevice*> devices,
                                     const std::string& name,
                                     std::shared_ptr<memory::Account> account = nullptr,
                                     Admission admission = Admission::kAsked,
                                     std::shared_ptr<FirstCall> first_call = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks a graph whose variables are not bound yet, on a compiling thread; `done` gets the
  // verdict there.
  void Check(std::shared_ptr<const GraphSource> source, std::shared_ptr<memory::Account> account,
             std::function<void(absl::Status)> done, Admission admission = Admission::kAsked);

  // Drops programs that no session names any more, the oldest first, until `bytes` of host memory
  // are free; with a name, only those that this user has asked for.
  void Reclaim(int64_t bytes, const std::string& user = "") ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops programs that no session has named whenever this was called in the last `limit`.
  void DropUnused(absl::Time now, absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);

  // What has not begun to compile fails with UNAVAILABLE from here on.
  void StopCompiling() { threads_.Stop(); }

  // The programs in memory, oldest first.
  std::vector<std::shared_ptr<Program>> List() const { return by_digest_.List(); }
  // By digest (or the key of its source) or an unambiguous prefix. NOT_FOUND, or INVALID_ARGUMENT
  // if it is ambiguous.
  absl::StatusOr<std::shared_ptr<Program>> Find(const std::string& prefix) const {
    return by_digest_.Find(prefix);
  }
  // In memory and being compiled.
  int64_t size() const { return by_digest_.size(); }

 private:
  using Result = absl::StatusOr<std::shared_ptr<const BoundProgram>>;
  struct Request : ProgramRequest {
    std::shared_ptr<ProgramFuture> future;
    std::shared_ptr<VariablePrograms> variables;  // of its source
  };

  // Another account asks for a program that is compiling: it is made in the turn of whichever user
  // comes first.
  void Join(ProgramsBySource::Entry& entry, const std::shared_ptr<memory::Account>& account,
            Admission admission) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Schedule(const memory::Account* account, Admission admission,
                        std::function<void()> task);
  // Compiles when it is first called.
  std::function<void()> Task(Request request);
  void Compile(const Request& request);
  // A program of these bindings alone.
  void CompileAlone(const Request& request, const graph::Graph& graph);
  // By the source's program for all values, if there is one and it is right at the request's.
  void BindOrCompile(const Request& request, const VariablePrograms::Result& program);
  // Answers the request, or, where whoever asked lacks the host memory, has the next who waits for
  // the same pay. `shared`: the program serves other bindings, too.
  void Finish(const Request& request, Result result, bool shared) ABSL_LOCKS_EXCLUDED(mutex_);
  // Where the variable counts up, binds the values that will be asked for next.
  void BindAhead(const Request& request, const VariableProgram& program)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Knows(const ProgramsBySource::Key& key) ABSL_LOCKS_EXCLUDED(mutex_);

  metrics::Metrics* const metrics_;
  const FirstCall::Now now_;
  const bool shared_;
  ProgramCompiler compiler_;
  ProgramsByDigest by_digest_;
  absl::Mutex mutex_;
  ProgramsBySource by_source_ ABSL_GUARDED_BY(mutex_);
  CompileThreads threads_;  // last: its tasks use everything above
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_
