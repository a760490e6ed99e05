// Every program in memory, shared by all sessions; compiles those that are missing, each once.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_
#define KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"
#include "server/metrics/metrics.h"
#include "server/runtime/graph_source.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program.h"
#include "server/runtime/thread_pool.h"

namespace kiln::runtime {

// A program that is there, will be there, or could not be compiled. Thread-safe.
class ProgramFuture {
 public:
  bool resolved() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Only when resolved.
  const absl::StatusOr<std::shared_ptr<Program>>& result() const ABSL_LOCKS_EXCLUDED(mutex_);
  // `waiter` will be called when it resolves, on a compiling thread. False, and it is not called,
  // if it has already.
  bool AddWaiter(std::function<void()> waiter) ABSL_LOCKS_EXCLUDED(mutex_);
  void Resolve(absl::StatusOr<std::shared_ptr<Program>> result) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  bool resolved_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<std::shared_ptr<Program>> result_;  // written once, before resolved_
  std::vector<std::function<void()>> waiters_ ABSL_GUARDED_BY(mutex_);
};

using CompileFunction = std::function<absl::StatusOr<compiler::CompiledProgram>(
    const graph::Graph&, const drivers::Target&, const compiler::Options&)>;

// Thread-safe. Two look-ups: by what the client sent, device and bindings, which needs no work at
// all; then by the digest of the canonical graph, which finds the same graph written differently.
class ProgramCache {
 public:
  struct Options {
    CompileFunction compile;
    compiler::KernelCache* kernel_cache = nullptr;  // may be null
    metrics::Metrics* metrics = nullptr;            // not null
    std::function<absl::Time()> now;
    int compile_threads = 2;      // programs compiled at once
    int kernel_threads = 1;       // kernels of one program compiled at once
    int max_idle_programs = 512;  // programs that no session names any more; the oldest go first
  };

  explicit ProgramCache(Options options);
  // Waits for the compilations under way.
  ~ProgramCache();

  // Never null. `name` is remembered if this is the first to ask.
  std::shared_ptr<ProgramFuture> Get(std::shared_ptr<const GraphSource> source,
                                     const Bindings& bindings, ManagedDevice& device,
                                     const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks a graph whose variables are not bound yet, on a compiling thread; `done` gets the
  // verdict there.
  void Check(std::shared_ptr<const GraphSource> source, std::function<void(absl::Status)> done);

  // What has not begun to compile fails with UNAVAILABLE from here on.
  void StopCompiling();

  // The programs in memory, oldest first.
  std::vector<std::shared_ptr<Program>> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // By digest (or the key of its source) or an unambiguous prefix. NOT_FOUND, or INVALID_ARGUMENT
  // if it is ambiguous.
  absl::StatusOr<std::shared_ptr<Program>> Find(const std::string& prefix) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::tuple<std::string, std::string, Bindings>;  // device, source key, bindings
  struct Entry {
    std::shared_ptr<ProgramFuture> future;
    int64_t used = 0;
  };
  struct Request {
    Key key;
    std::shared_ptr<const GraphSource> source;
    ManagedDevice* device;
    std::string name;
    std::shared_ptr<ProgramFuture> future;
  };

  void Compile(const Request& request);
  absl::StatusOr<std::shared_ptr<Program>> CompileGraph(const Request& request,
                                                        const graph::Graph& graph,
                                                        const std::string& digest);
  void Finish(const Request& request, absl::StatusOr<std::shared_ptr<Program>> result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EvictIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if nobody but this cache holds `future`.
  bool IsIdle(const std::string& device, const std::shared_ptr<ProgramFuture>& future) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a resolved source, and its program if no other source names it.
  void Forget(std::map<Key, Entry>::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<bool> stopped_{false};
  mutable absl::Mutex mutex_;
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Entry> by_source_ ABSL_GUARDED_BY(mutex_);
  // Per device and digest: the one that compiles or has compiled it.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<ProgramFuture>> by_digest_
      ABSL_GUARDED_BY(mutex_);
  ThreadPool threads_;  // last: its tasks use everything above
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_
