// The programs that clients asked for, by what they sent, and which of them are forgotten.
#ifndef KILN_SERVER_RUNTIME_PROGRAMS_BY_SOURCE_H_
#define KILN_SERVER_RUNTIME_PROGRAMS_BY_SOURCE_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/runtime/bound_program.h"
#include "server/runtime/graph_source.h"
#include "server/runtime/program_request.h"

namespace kiln::runtime {

class VariablePrograms;

// Not thread-safe.
//
// An entry goes when nobody but this table holds its future any more, never before: then no session
// names the program and nobody waits for it. What goes is handed to the caller, who destroys it
// once it holds no lock, since that unloads programs and frees device memory.
class ProgramsBySource {
 public:
  struct Key {
    std::string device;
    std::string source;  // GraphSource::key
    Bindings bindings;
    std::strong_ordering operator<=>(const Key&) const = default;
  };

  struct Entry {
    std::shared_ptr<ProgramFuture> future;
    // All bindings of a source have the same, which goes with the last of them. Null until the
    // first one sets it.
    std::shared_ptr<VariablePrograms> variables;
    PayersInTurn payers;            // while it compiles
    std::function<void()> compile;  // likewise; queued for each user who waits, it compiles once
    bool compiling = false;
    // Bound to a program that serves its source's other bindings too, so that it costs next to
    // nothing.
    bool shared = false;
    int64_t used = 0;
    absl::Time unused_since = absl::InfiniteFuture();  // when DropUnused first found it idle
  };
  using Dropped = std::vector<Entry>;

  struct Limits {
    int64_t idle_programs = 0;  // those of shared entries count once for each source
    int64_t idle_bindings = 0;  // shared entries
  };

  explicit ProgramsBySource(Limits limits) : limits_(limits) {}

  // Null if it is not there. Valid until the table changes.
  Entry* Find(const Key& key);
  // The same, and counts as a use of it.
  Entry* Use(const Key& key);
  // A new one, which is used now and compiles. `key` is not there yet.
  Entry& Add(const Key& key);
  // A new one that is ready. False, and nothing changes, if `key` is there already.
  bool AddShared(const Key& key, std::shared_ptr<const BoundProgram> program);
  // `key`, which is there, no longer compiles.
  void EndCompiling(const Key& key, bool shared);
  void Erase(const Key& key);

  // Beyond the limits, the least recently used idle ones.
  Dropped EvictIdle();
  // The least recently used idle programs until `bytes` of host memory are free. A source's program
  // for all values goes with all its bindings, if all are idle: alone they take next to none. With
  // a name, only those that this user has asked for.
  Dropped Reclaim(int64_t bytes, const std::string& user = "");
  // The programs that have been idle whenever this was called in the last `limit`.
  Dropped DropUnused(absl::Time now, absl::Duration limit);

 private:
  using Entries = std::map<Key, Entry>;

  // Used now, with the variables of its siblings.
  Entry MakeEntry(const Key& key);
  // A program that nobody needs: one entry, or the shared ones of a source.
  struct IdleProgram {
    int64_t used = 0;
    int64_t bytes = 0;
    std::vector<Entries::iterator> entries;
  };
  using Source = std::pair<std::string, std::string>;  // device, source

  static bool IsIdle(const Entry& entry);
  // Of one that is idle.
  static bool IsOf(const Entry& entry, const std::string& user);
  // Both: the least recently used first.
  std::vector<IdleProgram> IdlePrograms();
  std::vector<Entries::iterator> IdleBindings();
  void Drop(Entries::iterator entry, Dropped* dropped);
  void CountShared(const Key& key, int64_t more);

  const Limits limits_;
  Entries entries_;
  int64_t uses_ = 0;
  int64_t shared_ = 0;                   // entries that are
  std::map<Source, int64_t> shared_of_;  // where there are any
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAMS_BY_SOURCE_H_
