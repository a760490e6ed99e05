// The programs of a session, by the client's numbers.
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
#include "server/runtime/graph_source.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program_cache.h"
#include "server/sessions/id_set.h"
#include "server/sessions/in_flight.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// A graph under the client's number.
struct DefinedProgram {
  // Null once a graph without variables has been handed to the program cache: nobody needs it then.
  absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source;
  std::vector<runtime::Variable> variables;
  std::vector<runtime::ManagedDevice*> devices;  // not empty unless `source` is an error
  // Not null. Without bytes if the graph cannot be kept.
  std::shared_ptr<const ProgramOrigin> origin;
  memory::Charge charge;
  quota::Share share;
  struct Instance {
    std::shared_ptr<runtime::ProgramFuture> future;
    uint64_t compiled_for = 0;  // the operation, by its sequence number, that asked for the future
    uint64_t used = 0;          // the latest operation; the smallest goes first
  };
  // One for each binding of the variables that a run has used, within the session's limits; without
  // variables there is one, with no bindings.
  std::map<runtime::Bindings, Instance> instances;
};

// Not thread-safe: the session guards it.
class ProgramTable {
 public:
  // What is pointed to outlives the table and what it held.
  struct Services {
    runtime::ProgramCache* programs = nullptr;
    runtime::ManagedDevice* device = nullptr;      // where no others are named
    std::vector<runtime::ManagedDevice*> devices;  // those that can be
    std::shared_ptr<memory::Account> host;
    size_t bindings_per_program = 0;           // remembered; the least recently used go first
    std::string user;                          // who asks for the programs
    quota::Meter* programs_of_user = nullptr;  // may be null
  };

  explicit ProgramTable(Services services) : services_(std::move(services)) {}

  // The program is being compiled where a future is returned; it is null where the graph has
  // variables, which a run binds. The error of a graph or a device is the program's from here on:
  // runs get it. A number that was taken, or for which there is no room, stays as it was;
  // quota::Refusal: the user has too many.
  absl::StatusOr<std::shared_ptr<runtime::ProgramFuture>> Define(
      const DefineProgram& operation, runtime::Admission admission = runtime::Admission::kAsked);
  // What the run must wait for, by its sequence number; null if it can be looked up.
  std::shared_ptr<runtime::ProgramFuture> MustWaitFor(uint64_t sequence, const RunProgram& run);
  // The program with the run's bindings. For the same number and run MustWaitFor has returned null.
  absl::StatusOr<std::shared_ptr<const runtime::BoundProgram>> Find(uint64_t sequence,
                                                                    const RunProgram& run);
  absl::Status Release(uint64_t program);
  // The same as Define compiles, for a definition that is done again. Null where there are
  // variables.
  std::shared_ptr<runtime::ProgramFuture> CompileAgain(
      const std::shared_ptr<const runtime::GraphSource>& source, const ProgramOrigin& origin,
      const runtime::Bindings& bindings) const;

  // What the program is made of; null if it is unknown or cannot be kept.
  std::shared_ptr<const ProgramOrigin> OriginOf(uint64_t program) const;
  const std::map<uint64_t, DefinedProgram>& programs() const { return programs_; }
  const IdSet& used() const { return used_; }
  // For a table that was kept.
  void RestoreUsed(IdSet used) { used_ = std::move(used); }
  // One of those numbers, with its graph or the error that it was refused with. No limit holds.
  void Restore(uint64_t number, absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source,
               std::shared_ptr<const ProgramOrigin> origin);

  // Of programs that are not ready, or whose first run has not been answered; without those that
  // are ready and that nobody runs.
  struct Waiting {
    std::string name;
    runtime::FirstCall::Progress progress;
  };
  std::vector<Waiting> FirstCalls() const;
  // True if one of the numbers names `program`.
  bool Names(const runtime::Program& program) const;
  size_t size() const { return programs_.size(); }
  // Empties the table; what it held is destroyed by the caller, without locks.
  [[nodiscard]] std::map<uint64_t, DefinedProgram> TakeAll();

 private:
  // The program with the run's bindings; null if there is none to wait for. A binding that has
  // failed is compiled again, once for each run: memory may have become free.
  std::shared_ptr<runtime::ProgramFuture> Instance(uint64_t sequence, const RunProgram& run);
  std::shared_ptr<runtime::ProgramFuture> Compile(
      const DefinedProgram& program, const runtime::Bindings& bindings,
      runtime::Admission admission, std::shared_ptr<runtime::FirstCall> first_call) const;
  // An entry with room for one instance.
  absl::StatusOr<DefinedProgram> Make(
      absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source,
      std::shared_ptr<const ProgramOrigin> origin, runtime::Admission admission) const;
  // Compiles a graph without variables.
  std::shared_ptr<runtime::ProgramFuture> Begin(
      DefinedProgram* program, runtime::Admission admission,
      std::shared_ptr<runtime::FirstCall> first_call = nullptr) const;
  // Those of these names. NOT_FOUND; see FindDevice. UNAVAILABLE: ManagedDevice::CheckUsable.
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
