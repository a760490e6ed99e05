// The client's numbers for tensors and programs.
#ifndef KILN_SERVER_SESSIONS_HANDLE_TABLE_H_
#define KILN_SERVER_SESSIONS_HANDLE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/memory/host_memory.h"
#include "server/runtime/graph_source.h"
#include "server/runtime/program_cache.h"
#include "server/runtime/run.h"
#include "server/sessions/id_set.h"

namespace kiln::sessions {

// Tensors of a session, by handle. Not thread-safe: the session guards it.
class HandleTable {
 public:
  // OK if all are new, not 0 and distinct; INVALID_ARGUMENT names the handle.
  absl::Status CheckNew(absl::Span<const uint64_t> handles) const;
  // `handle` has passed CheckNew.
  void Bind(uint64_t handle, runtime::ValuePointer value);
  // Binds those of `handles` that are new to one failed value; `charge` is for its error.
  void Poison(absl::Span<const uint64_t> handles, const absl::Status& error,
              memory::Charge charge = {});
  // A known handle names another value from here on.
  void Rebind(uint64_t handle, runtime::ValuePointer value) { values_[handle] = std::move(value); }
  // NOT_FOUND names the handle and says whether it was released.
  absl::StatusOr<runtime::ValuePointer> Find(uint64_t handle) const;
  absl::Status Release(uint64_t handle);
  void Clear() { values_.clear(); }
  size_t size() const { return values_.size(); }
  // Host memory that the table and its values take with so many handles more.
  int64_t BytesWith(size_t more) const;

 private:
  absl::Status Unknown(uint64_t handle) const;

  absl::flat_hash_map<uint64_t, runtime::ValuePointer> values_;
  IdSet used_;
};

// A graph under the client's number.
struct DefinedProgram {
  // Null once a graph without variables has been handed to the program cache: nobody needs it then.
  absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source;
  std::vector<runtime::Variable> variables;
  std::string name;
  memory::Charge charge;
  struct Instance {
    std::shared_ptr<runtime::ProgramFuture> future;
    uint64_t compiled_for = 0;  // the operation, by its sequence number, that asked for the future
    uint64_t used = 0;          // the latest operation; the smallest goes first
  };
  // One for each binding of the variables that a run has used, within the session's limits; without
  // variables there is one, with no bindings.
  std::map<runtime::Bindings, Instance> instances;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_HANDLE_TABLE_H_
