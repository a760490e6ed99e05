// Defines a program from a graph, and compiles it if its graph has no variables.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_DEFINE_PROGRAM_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_DEFINE_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/first_call.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

// Handles and program ids are chosen by the client: never 0, never used twice.
struct DefineProgram {
  uint64_t program = 0;
  // An error if the graph could not be unpacked; it is then the answer.
  absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> graph;
  std::string name;
  // Names, one for each coordinate of the graph's mesh; empty: the session's device.
  std::vector<std::string> devices{};
  // Tracks progress since the message was received; null if the definition is executed again.
  std::shared_ptr<runtime::FirstCall> first_call{};
  std::string wire{};  // the graph in a log, until PrepareReplay unpacks it

  // The kernels change when faster ones were found.
  bool live = false;
  // ProgramOrigin::settings, of an operation in a log.
  runtime::SettingsChange settings = runtime::kNewestSettings;

  // 13: with devices; 14: with settings, too. Only 14 is written.
  static constexpr uint64_t kLogKinds[] = {1, 13, 14};
  static constexpr bool kLogsItself = true;
  int64_t bytes() const { return HeldBy(name) + HeldBy(devices); }
  int64_t graph_bytes() const { return graph.ok() ? (*graph)->bytes() : 0; }
  uint64_t new_program() const { return program; }
  void EncodeForLog(Encoder& out) const;
  static DefineProgram DecodeFromLog(uint64_t kind, Decoder& in);
  absl::Status PrepareReplay(SessionState& session);
  void Execute(SessionState& session, uint64_t sequence);
};

struct SavedDefinition {
  size_t origin = 0;

  void Encode(Encoder& out) const { out.Number(origin); }
  static SavedDefinition Decode(Decoder& in, const CheckpointSizes& sizes) {
    return {in.Below(sizes.origins)};
  }
  void Redo(SessionState& session, uint64_t sequence, size_t pending) const;
};

struct PendingDefinition {
  std::shared_ptr<const ProgramOrigin> program;

  absl::StatusOr<SavedDefinition> Save(CheckpointIndex& index) const;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_DEFINE_PROGRAM_H_
