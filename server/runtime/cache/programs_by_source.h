// The programs that clients asked for, by the source that they sent, and the policy for dropping
// them.
#ifndef KILN_SERVER_RUNTIME_CACHE_PROGRAMS_BY_SOURCE_H_
#define KILN_SERVER_RUNTIME_CACHE_PROGRAMS_BY_SOURCE_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/cache/program_request.h"
#include "server/runtime/program/bound_program.h"

namespace kiln::runtime {

class VariablePrograms;

// Not thread-safe.
//
// An entry may be dropped only when this table has the only reference to its future: then no
// session names the program and nothing waits for it. Dropped entries are returned to the caller,
// who destroys them without holding a lock, since that unloads programs and frees device memory.
class ProgramsBySource {
 public:
  struct Key {
    std::string device;
    std::string source;  // GraphSource::key, with more if programs of the source differ
    Bindings bindings;
    std::strong_ordering operator<=>(const Key&) const = default;
  };

  struct Entry {
    std::shared_ptr<ProgramFuture> future;
    // The same for all bindings of a source, and destroyed with the last of them. Null until the
    // first one sets it.
    std::shared_ptr<VariablePrograms> variables;
    PayersInTurn payers;            // while it compiles
    std::function<void()> compile;  // while it compiles; queued for each waiting user
    bool compiling = false;
    // Set once it has compiled, before the future is resolved to it.
    std::shared_ptr<const BoundProgram> program;
    // After any of these changes, the program has the same settings.
    SettingsChange first_change = 0;
    SettingsChange last_change = 0;
    bool is_old = false;  // ProgramRequest::is_old
    // Bound to a program that also serves its source's other bindings, so that it takes very little
    // memory.
    bool shared = false;
    int64_t used = 0;
    absl::Time unused_since = absl::InfiniteFuture();  // when DropUnused first found it idle
  };
  using Dropped = std::vector<Entry>;

  struct Limits {
    int64_t idle_programs = 0;  // shared entries count once for each source
    int64_t idle_bindings = 0;  // shared entries
  };

  explicit ProgramsBySource(Limits limits) : limits_(limits) {}

  // Returns null if it is not there. Valid until the table changes.
  Entry* Find(const Key& key);
  // The same, and counts as a use of it.
  Entry* Use(const Key& key);
  // Adds an entry that is used now and compiles. Requires: `key` is not there yet.
  Entry& Add(const Key& key);
  // Adds an entry that is ready. Returns false, and changes nothing, if `key` is there already.
  bool AddShared(const Key& key, std::shared_ptr<const BoundProgram> program);
  // Requires: `key` is there. It no longer compiles, and its future is resolved to `program`
  // later, if not null. Returns the outdated entry that it replaces, if that is idle.
  Dropped EndCompiling(const Key& key, bool shared, std::shared_ptr<const BoundProgram> program);
  void Erase(const Key& key);

  // Drops the least recently used idle entries beyond the limits.
  Dropped EvictIdle();
  // Drops the least recently used idle programs until `bytes` of host memory are freed. A source's
  // program for all values is dropped with all its bindings, if all are idle: a binding alone takes
  // very little. With a name, only programs that this user has asked for.
  Dropped Reclaim(int64_t bytes, const std::string& user = "");
  // Drops the programs that were idle at every call of this method within the last `limit`.
  Dropped DropUnused(absl::Time now, absl::Duration limit);

  // Returns the variables of the sources that have one of these programs, except in old entries
  // (ProgramRequest::is_old), which have the settings that were asked for.
  std::vector<std::shared_ptr<VariablePrograms>> VariablesOf(
      const std::vector<std::shared_ptr<Program>>& programs) const;
  // All programs that are ready have the same settings after this change as before, except old and
  // outdated ones.
  void ExtendTo(SettingsChange change);
  // Find does not return the entries of these programs any more, except old ones. They stay, also
  // those that no session names, until they are dropped as others are, or the same key is there
  // again. Returns those of earlier calls that these replace.
  Dropped SetOutdated(const std::vector<std::shared_ptr<Program>>& programs);

 private:
  using Entries = std::map<Key, Entry>;

  // Makes an entry that is used now and has the variables of its siblings.
  Entry MakeEntry(const Key& key);
  // A program that is not needed: one entry, or the shared ones of a source.
  struct IdleProgram {
    int64_t used = 0;
    int64_t bytes = 0;
    std::vector<Entries::iterator> entries;
  };
  using Source = std::pair<std::string, std::string>;  // device, source

  static bool IsIdle(const Entry& entry);
  // The key of an outdated entry, under which no client's source is.
  static Key OutdatedKey(Key key);
  static bool IsOutdated(const Key& key);
  // Whether the entry has compiled, and has one of the programs.
  static bool HasOneOf(const Entry& entry, const std::vector<std::shared_ptr<Program>>& programs);
  // Requires: `entry` is idle.
  static bool IsOf(const Entry& entry, const std::string& user);
  // Both return the least recently used first.
  std::vector<IdleProgram> IdlePrograms();
  std::vector<Entries::iterator> IdleBindings();
  // Requires: the entry does not compile.
  void Drop(Entries::iterator entry, Dropped* dropped);
  void CountShared(const Key& key, int64_t more);
  void Validate() const;

  const Limits limits_;
  Entries entries_;
  int64_t uses_ = 0;
  int64_t shared_ = 0;                   // number of shared entries
  std::map<Source, int64_t> shared_of_;  // without zero counts
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_PROGRAMS_BY_SOURCE_H_
