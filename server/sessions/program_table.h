// The programs of a session, by the client's ids.
#ifndef KILN_SERVER_SESSIONS_PROGRAM_TABLE_H_
#define KILN_SERVER_SESSIONS_PROGRAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/memory/host_memory.h"
#include "server/quota/meter.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/sessions/id_set.h"
#include "server/sessions/operations/define_program.h"
#include "server/sessions/operations/run.h"

namespace kiln::sessions {

// A graph with the client's id.
struct DefinedProgram {
  // Null after a graph without variables was passed to the program cache, because it is not needed
  // any more; not null if the program is live.
  absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source;
  std::vector<runtime::Variable> variables;
  std::vector<runtime::ManagedDevice*> devices;  // not empty unless `source` is an error
  // Not null. Its `wire` is empty if the graph cannot be saved.
  std::shared_ptr<const ProgramOrigin> origin;
  memory::Charge charge;
  quota::Share share;
  struct Instance {
    std::shared_ptr<runtime::ProgramFuture> future;
    uint64_t compiled_for = 0;  // sequence number of the operation that requested it
    uint64_t used = 0;          // sequence number of its last use; the smallest is evicted first
    // Of a live program: the settings that it was last asked for with, and the program with these
    // while it compiles; runs have `future` until then.
    runtime::SettingsChange settings = runtime::kNewestSettings;
    std::shared_ptr<runtime::ProgramFuture> renewed{};
  };
  // One for each binding of the variables that a run has used, up to the session's limits; a
  // program without variables has one, with no bindings.
  std::map<runtime::Bindings, Instance> instances;
};

// Not thread-safe: guarded by the session's lock.
class ProgramTable {
 public:
  // Requires: the objects pointed to outlive the table and the programs taken from it. `host` is
  // not null.
  struct Services {
    runtime::ProgramCache* programs = nullptr;
    runtime::ManagedDevice* device = nullptr;      // if the definition names none
    std::vector<runtime::ManagedDevice*> devices;  // all that a definition can name
    std::shared_ptr<memory::Account> host;
    size_t bindings_per_program = 0;           // the least recently used are evicted
    std::string user;                          // the user who requests the programs
    quota::Meter* programs_of_user = nullptr;  // may be null
  };

  explicit ProgramTable(Services services) : services_(std::move(services)) {}

  // Adds a program. Returns the future of its compilation; null if the graph has variables, whose
  // values come with runs. An error of the graph or a device is stored with the program, and its
  // runs return it. If the id was used before, or there is no memory for the program, nothing
  // changes. quota::Refusal: the user has too many programs.
  absl::StatusOr<std::shared_ptr<runtime::ProgramFuture>> Define(
      const DefineProgram& operation, runtime::Admission admission = runtime::Admission::kAsked);
  // Returns the compilation that the run with this sequence number must wait for; null if the
  // program can be looked up.
  std::shared_ptr<runtime::ProgramFuture> MustWaitFor(uint64_t sequence, const RunProgram& run);
  // Returns the program with the run's bindings. Requires: MustWaitFor has returned null for the
  // same sequence number and run.
  absl::StatusOr<std::shared_ptr<const runtime::BoundProgram>> Find(uint64_t sequence,
                                                                    const RunProgram& run);
  absl::Status Release(uint64_t program);
  // Compiles what Define or a run compiled, for an operation that is executed again. Requires:
  // `bindings` has values for all variables of the graph.
  std::shared_ptr<runtime::ProgramFuture> CompileAgain(
      const std::shared_ptr<const runtime::GraphSource>& source, const ProgramOrigin& origin,
      const runtime::Bindings& bindings) const;

  // Returns what the program was compiled from; null if it is unknown or cannot be saved.
  std::shared_ptr<const ProgramOrigin> OriginOf(uint64_t program) const;
  const std::map<uint64_t, DefinedProgram>& programs() const { return programs_; }
  const IdSet& used() const { return used_; }
  // For a restored session. Requires: the table is new.
  void RestoreUsed(IdSet used);
  // Restores the program of one of the used numbers, with its graph or the error of its definition.
  // Limits are not enforced. Requires: the number was used and has no program.
  void Restore(uint64_t number, absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source,
               std::shared_ptr<const ProgramOrigin> origin);

  // Programs that are not ready, or whose first run has not been answered; without those that are
  // ready and have no run.
  struct Waiting {
    std::string name;
    runtime::FirstCall::Progress progress;
  };
  std::vector<Waiting> FirstCalls() const;
  // True if one of the ids refers to `program`.
  bool Names(const runtime::Program& program) const;
  size_t size() const { return programs_.size(); }
  // Empties the table. The caller destroys the returned programs, without holding locks.
  [[nodiscard]] std::map<uint64_t, DefinedProgram> TakeAll();
  // Each program's number was used, its parts agree, and its instances are charged and bounded.
  void Validate() const;

 private:
  // Returns the program with the run's bindings, and compiles it if necessary; null if there is
  // none to wait for. A failed binding is compiled again, once for each run, because memory may
  // have become free.
  std::shared_ptr<runtime::ProgramFuture> Instance(uint64_t sequence, const RunProgram& run);
  std::shared_ptr<runtime::ProgramFuture> Compile(
      const DefinedProgram& program, const runtime::Bindings& bindings,
      runtime::Admission admission, std::shared_ptr<runtime::FirstCall> first_call) const;
  // Asks for the program of a live program's instance again if settings have changed, and uses it
  // once it is compiled.
  void Renew(const DefinedProgram& program, const runtime::Bindings& bindings,
             DefinedProgram::Instance* instance) const;
  // Makes an entry with memory for one instance.
  absl::StatusOr<DefinedProgram> Make(
      absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source,
      std::shared_ptr<const ProgramOrigin> origin, runtime::Admission admission) const;
  // Compiles a graph without variables.
  std::shared_ptr<runtime::ProgramFuture> Begin(
      DefinedProgram* program, runtime::Admission admission,
      std::shared_ptr<runtime::FirstCall> first_call = nullptr) const;
  // Returns the devices with these names; the session's device if `names` is empty. NOT_FOUND: see
  // FindDevice. UNAVAILABLE: see ManagedDevice::CheckUsable.
  absl::StatusOr<std::vector<runtime::ManagedDevice*>> Devices(
      const std::vector<std::string>& names, runtime::Admission admission) const;
  absl::Status CheckNew(uint64_t program) const;
  absl::Status Unknown(uint64_t program) const;

  const Services services_;
  std::map<uint64_t, DefinedProgram> programs_;
  IdSet used_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_PROGRAM_TABLE_H_
