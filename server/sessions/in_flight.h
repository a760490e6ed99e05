// Operations that have been executed and not answered, with what is needed to execute them again if
// the daemon ends first. Executing them again is equivalent to having waited: values never change,
// and each run makes new ones.
#ifndef KILN_SERVER_SESSIONS_IN_FLIGHT_H_
#define KILN_SERVER_SESSIONS_IN_FLIGHT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/run/run.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// The source from which a program can be compiled again.
struct ProgramOrigin {
  std::string wire;  // GraphSource::Wire
  std::string name;
  std::vector<std::string> devices{};  // as DefineProgram::devices
};

struct RunInFlight {
  std::shared_ptr<const ProgramOrigin> program;
  runtime::Bindings bindings;
  std::vector<runtime::ValuePointer> inputs;
  std::vector<runtime::ValuePointer> results;  // outputs, then updates
  bool report_time = false;
};
struct DefinitionInFlight {
  std::shared_ptr<const ProgramOrigin> program;
};
struct ReadInFlight {
  runtime::ValuePointer value;
};
struct BarrierInFlight {};
struct MoveInFlight {
  runtime::ValuePointer source;
  runtime::ValuePointer target;
  Place place;
};

using InFlight =
    std::variant<RunInFlight, DefinitionInFlight, ReadInFlight, BarrierInFlight, MoveInFlight>;
// By sequence number.
using InFlightTable = absl::flat_hash_map<uint64_t, InFlight>;

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_IN_FLIGHT_H_
