// Every program in memory, shared by all sessions; compiles those that are missing, each once.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_
#define KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compiler/compiler.h"
#include "compiler/variables/variable_graph.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/runtime/bound_program.h"
#include "server/runtime/fair_pool.h"
#include "server/runtime/future.h"
#include "server/runtime/graph_source.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program.h"

namespace kiln::runtime {

using ProgramFuture = Future<std::shared_ptr<const BoundProgram>>;

using CompileFunction = std::function<absl::StatusOr<compiler::CompiledProgram>(
    const graph::Graph&, const drivers::Target&, const compiler::Options&)>;

// Thread-safe. Two look-ups: by what the client sent, device and bindings, which needs no work at
// all; then by the digest of the canonical graph, which finds the same graph written differently.
//
// A graph with variables is compiled once for all their values. Each new binding of them costs the
// proof that this program is the graph's at these values (variables/is_right_at.h), and where it is
// not, or there is none, a program of its own.
class ProgramCache {
 public:
  struct Options {
    CompileFunction compile;
    compiler::KernelCache* kernel_cache = nullptr;  // may be null
    metrics::Metrics* metrics = nullptr;            // not null
    std::function<absl::Time()> now;
    int compile_threads = 8;         // programs compiled at once
    int compile_threads_of_one = 2;  // for one account: huge graphs hold up nobody else
    int kernel_threads = 1;          // kernels of one program compiled at once
    int max_idle_programs = 512;     // programs that no session names any more; the oldest go first
    // Programs that are predicted to run longer are refused; 0: none is.
    double run_seconds_max = 0;
    // As compiler::Options has them.
    std::vector<std::string> disabled_passes;
    std::vector<std::string> dumped_passes;
    // Values at which a program for all values is known to be right; the oldest go first.
    int max_idle_bindings = 1 << 15;
  };

  explicit ProgramCache(Options options);
  // Waits for the compilations under way.
  ~ProgramCache();

  // Never null. `name` is remembered if this is the first to ask. The host memory that compiling
  // and the program take is charged to `account`, if there is one.
  std::shared_ptr<ProgramFuture> Get(std::shared_ptr<const GraphSource> source,
                                     const Bindings& bindings, ManagedDevice& device,
                                     const std::string& name,
                                     std::shared_ptr<memory::Account> account = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks a graph whose variables are not bound yet, on a compiling thread; `done` gets the
  // verdict there.
  void Check(std::shared_ptr<const GraphSource> source, std::shared_ptr<memory::Account> account,
             std::function<void(absl::Status)> done);

  // Drops programs that no session names any more, the oldest first, until `bytes` of host memory
  // are free.
  void Reclaim(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

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
  // Device, source key, the upper end of each variable's part of its bounds (WorkingBounds).
  using GeneralKey = std::tuple<std::string, std::string, std::vector<int64_t>>;
  // One program for all values of a source's variables.
  struct General {
    std::vector<Variable> bounds;
    variables::VariableGraph graph;
    std::shared_ptr<Program> program;
  };
  using GeneralFuture = Future<std::shared_ptr<const General>>;
  struct Entry {
    std::shared_ptr<ProgramFuture> future;
    int64_t used = 0;
    bool shared = false;  // served by its source's one program, so that it costs next to nothing
    bool compiling = false;
    // Whoever asked while it compiles, each once: when one lacks the host memory, the next pays.
    std::vector<std::weak_ptr<memory::Account>> payers;
    size_t next_payer = 1;
  };
  struct Request {
    Key key;
    std::shared_ptr<const GraphSource> source;
    ManagedDevice* device;
    std::string name;
    std::shared_ptr<ProgramFuture> future;
    std::shared_ptr<memory::Account> account;
    std::shared_ptr<memory::Charge> compiling;  // for kCompilation; all copies share it
  };

  using Finished = std::function<void(absl::StatusOr<std::shared_ptr<const BoundProgram>>)>;

  void Schedule(Request request);
  void Compile(const Request& request);
  // A program of these bindings alone.
  void CompileAlone(const Request& request, const graph::Graph& graph);
  // Charges the request for a graph that it builds, beside those that it has.
  static Grow ChargeFor(const Request& request);
  static std::vector<Variable> BoundsOf(const Request& request);
  // The source's one program, or why there is none. The first to ask makes it, on its own thread.
  std::shared_ptr<GeneralFuture> GeneralOf(const Request& request) ABSL_LOCKS_EXCLUDED(mutex_);
  void MakeGeneral(const Request& request, const std::shared_ptr<GeneralFuture>& general);
  // `general` is resolved.
  void BindGeneral(const Request& request, const GeneralFuture& general);
  // Compiles the graph, or waits for whoever does; `future`, which `finished` resolves, is what
  // others wait for then.
  void CompileOnce(const Request& request, const graph::Graph& graph,
                   std::shared_ptr<ProgramFuture> future, const Finished& finished)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Program>> CompileGraph(const Request& request,
                                                        const graph::Graph& graph,
                                                        const std::string& digest);
  void ReportRefusals(const compiler::CompiledProgram& program, const std::string& digest) const;
  void Finish(const Request& request, absl::StatusOr<std::shared_ptr<const BoundProgram>> result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the log may show the graph, which the compiler failed on.
  bool ShowsGraphOf(const std::string& digest) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same at the expense of the next who waits for it, if there is anyone.
  static std::optional<Request> AtNextExpense(const Request& request, Entry* entry);
  // The program at the request's bindings, if it is right there.
  absl::StatusOr<std::shared_ptr<const BoundProgram>> BindIfCovered(const Request& request,
                                                                    const graph::Graph& graph,
                                                                    const General& general);
  // Where the variable counts up, binds the values that will be asked for next.
  void BindAhead(const Request& request, const General& general) ABSL_LOCKS_EXCLUDED(mutex_);
  void MarkShared(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRunTime(const Program& program) const;
  // Those that nobody but this cache holds, the least recently used first.
  std::vector<std::map<Key, Entry>::iterator> Idle(bool shared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictIdle(bool shared, int64_t surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if nobody but this cache holds `future`.
  bool IsIdle(const std::string& device, const std::shared_ptr<ProgramFuture>& future) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a resolved source, and its program if no other source names it.
  void Forget(std::map<Key, Entry>::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a source's programs for all values if no binding of the source is left.
  void ForgetGeneral(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops a program that nothing names any more.
  void DropUnnamed(const std::string& device, const std::shared_ptr<Program>& program)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<bool> stopped_{false};
  mutable absl::Mutex mutex_;
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Entry> by_source_ ABSL_GUARDED_BY(mutex_);
  int64_t shared_ ABSL_GUARDED_BY(mutex_) = 0;  // entries that are
  // Per device and digest: the one that compiles or has compiled it.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<ProgramFuture>> by_digest_
      ABSL_GUARDED_BY(mutex_);
  std::map<GeneralKey, std::shared_ptr<GeneralFuture>> generals_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> shown_ ABSL_GUARDED_BY(mutex_);  // digests; the log has their graphs
  FairPool threads_;                                     // last: its tasks use everything above
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_CACHE_H_
