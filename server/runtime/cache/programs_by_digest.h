// One program for each graph: the same graph, however it was written, is compiled once for a
// device.
#ifndef KILN_SERVER_RUNTIME_CACHE_PROGRAMS_BY_DIGEST_H_
#define KILN_SERVER_RUNTIME_CACHE_PROGRAMS_BY_DIGEST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/graph/graph.h"
#include "server/runtime/cache/compile_threads.h"
#include "server/runtime/cache/program_compiler.h"
#include "server/runtime/cache/program_request.h"
#include "server/runtime/program/bound_program.h"

namespace kiln::runtime {

// Thread-safe. Finds the programs that others hold and keeps none alive.
class ProgramsByDigest {
 public:
  using Done = std::function<void(absl::StatusOr<std::shared_ptr<const BoundProgram>>)>;

  // `compiler` outlives this, `threads` every call.
  ProgramsByDigest(ProgramCompiler* compiler, CompileThreads* threads)
      : compiler_(compiler), threads_(threads) {}

  // Calls `done` with the graph's program with the request's settings. If there is none, compiles
  // it on this thread. Concurrent callers wait for `future`, which `done` resolves at once or after
  // another attempt. If that fails for lack of host memory, each of them compiles the graph at its
  // own expense.
  void GetOrCompile(const ProgramRequest& request, const graph::Graph& graph,
                    const std::shared_ptr<ProgramFuture>& future, const Done& done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The next GetOrCompile of these programs' graphs compiles them anew. Those who hold the programs
  // keep them, and List and Find still return them.
  void Supersede(const std::vector<std::shared_ptr<Program>>& programs) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the programs in memory, oldest first.
  std::vector<std::shared_ptr<Program>> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Finds a program by its digest (or the key of its source) or an unambiguous prefix. NOT_FOUND,
  // or INVALID_ARGUMENT if it is ambiguous.
  absl::StatusOr<std::shared_ptr<Program>> Find(const std::string& prefix) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of programs in memory or being compiled.
  int64_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::pair<std::string, std::string>;  // device, digest
  // Is compiling, or has a program, or is dead.
  struct Entry {
    std::shared_ptr<ProgramFuture> compiling;
    std::weak_ptr<Program> program;
    bool is_dead() const { return !compiling && program.expired(); }
  };

  // Compiles a program that only those who hold it use.
  void CompileBeside(const ProgramRequest& request, const graph::Graph& graph,
                     const std::string& digest, const Done& done) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the program's kernels have other settings than the request asks for.
  bool HasOtherSettings(const Program& program, const ProgramRequest& request) const;
  // Waits for `other`, which compiles the same graph.
  void Await(const std::shared_ptr<ProgramFuture>& other, const ProgramRequest& request,
             const graph::Graph& graph, const std::shared_ptr<ProgramFuture>& future,
             const Done& done);
  void EndCompiling(const Key& key, const absl::StatusOr<std::shared_ptr<Program>>& program)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  ProgramCompiler* const compiler_;
  CompileThreads* const threads_;
  mutable absl::Mutex mutex_;
  // Dead entries are erased when the next program is compiled, so there are never many.
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // Superseded or compiled beside, and still held by others. Expired ones are erased when the next
  // one is added.
  std::vector<std::weak_ptr<Program>> superseded_ ABSL_GUARDED_BY(mutex_);
};

// Returns the one of `programs` whose digest (or key of its source) begins with `prefix`.
// NOT_FOUND, or INVALID_ARGUMENT if there are several digests; of one graph on several devices, the
// program compiled last.
absl::StatusOr<std::shared_ptr<Program>> FindByPrefix(
    const std::vector<std::shared_ptr<Program>>& programs, const std::string& prefix);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_PROGRAMS_BY_DIGEST_H_
