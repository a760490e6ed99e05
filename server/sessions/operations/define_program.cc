#include "server/sessions/operations/define_program.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/log/log.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// Answers the operation once the program is compiled, or its graph is checked if `future` is null.
void AwaitDefinition(SessionState& session, uint64_t sequence,
                     std::shared_ptr<const runtime::GraphSource> source,
                     const std::shared_ptr<runtime::ProgramFuture>& future,
                     runtime::Admission admission) {
  KILN_CHECK(source != nullptr);
  const auto self = session.shared_from_this();
  if (!future) {
    session.services.programs->Check(
        source, session.host,
        [self, sequence, key = source->key()](absl::Status checked) {
          self->Finish({.sequence = sequence, .error = checked, .digest = checked.ok() ? key : ""});
        },
        admission);
    return;
  }
  const auto compiled = [self, sequence, future] {
    const auto& result = future->result();
    self->Finish({.sequence = sequence,
                  .error = self->user->Explain(result.status()),
                  .digest = result.ok() ? (*result)->program->description().digest : ""});
  };
  if (!future->AddWaiter(session.CountCompileWait(compiled))) compiled();
}

void LogDefinition(const SessionState& session, uint64_t sequence, const DefineProgram& defined) {
  if (!log::IsOn(log::Level::kDebug)) return;
  const std::string& name = session.identity.name;
  log::Debug("program_defined", {{"session", name},
                                 {"operation", absl::StrCat(name, "/", sequence)},
                                 {"id", absl::StrCat(defined.program)},
                                 {"name", runtime::ShortName(defined.name)},
                                 {"source", runtime::ShortDigest((*defined.graph)->key())}});
}

}  // namespace

void DefineProgram::EncodeForLog(Encoder& out) const {
  out.Number(kLogKinds[2]);
  out.Number(settings);
  out.Number(live ? 1 : 0);
  out.Texts(devices);
  out.Number(program);
  out.Text(name);
  out.Status(graph.status());
  if (graph.ok()) out.Text((*graph)->Wire());
}

DefineProgram DefineProgram::DecodeFromLog(uint64_t kind, Decoder& in) {
  DefineProgram define;
  if (kind == kLogKinds[2]) {
    define.settings = in.Number();
    define.live = in.Below(2) == 1;
  }
  if (kind != kLogKinds[0]) define.devices = in.Texts();
  define.program = in.Number();
  define.name = std::string(in.Text());
  define.graph = absl::UnknownError("");
  if (absl::Status error = in.Status(); !error.ok()) {
    define.graph = std::move(error);
  } else {
    define.wire = std::string(in.Text());
  }
  return define;
}

absl::Status DefineProgram::PrepareReplay(SessionState& session) {
  if (wire.empty()) return absl::OkStatus();
  graph = session.services.unpack_graph(std::exchange(wire, {}), *session.host);
  return graph.status();
}

void DefineProgram::Execute(SessionState& session, uint64_t sequence) {
  const bool again = session.IsReplaying();
  if (graph.ok() && !again) {
    // The error is stored with the program.
    const absl::Status fits = session.user->graph_nodes.Check((*graph)->nodes());
    if (!fits.ok()) graph = fits;
  }
  if (!again && !live) settings = session.services.programs->settings();
  const auto admission = again ? runtime::Admission::kAgain : runtime::Admission::kAsked;
  const std::string encoded = session.Encoded(*this);
  absl::StatusOr<std::shared_ptr<runtime::ProgramFuture>> defined;
  {
    absl::MutexLock lock(&session.mutex);
    defined = session.programs.Define(*this, admission);
    auto origin = session.programs.OriginOf(program);
    if (defined.ok()) {
      if (origin && !session.closed)
        session.pending.SetExecuted(sequence, PendingDefinition{std::move(origin)});
      session.LogExecuted(sequence, encoded);
    } else {
      if (session.is_replaying && graph.ok()) session.replay_error.Update(defined.status());
      // A program whose graph was refused keeps its number; one for which there was no memory does
      // not.
      if (session.programs.used().Contains(program)) {
        session.LogExecuted(sequence,
                            session.Encoded(DefineProgram{program, defined.status(), name}));
      } else {
        session.LogExecuted(sequence, session.Encoded(Refused{defined.status(), {}}));
      }
    }
  }
  if (!defined.ok()) return session.Fail(sequence, {}, defined.status());
  LogDefinition(session, sequence, *this);
  AwaitDefinition(session, sequence, *graph, *defined, admission);
}

absl::StatusOr<SavedDefinition> PendingDefinition::Save(CheckpointIndex& index) const {
  const auto origin = index.Of(program);
  if (!origin.ok()) return origin.status();
  return SavedDefinition{*origin};
}

void SavedDefinition::Redo(SessionState& session, uint64_t sequence, size_t) const {
  std::shared_ptr<const runtime::GraphSource> source;
  std::shared_ptr<const ProgramOrigin> program;
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.restoration) return;
    KILN_CHECK_LT(origin, session.restoration->sources.size());
    source = session.restoration->sources[origin];
    program = session.restoration->origins[origin];
    session.pending.SetExecuted(sequence, PendingDefinition{program});
  }
  AwaitDefinition(
      session, sequence, source,
      source->variables().empty() ? session.programs.CompileAgain(source, *program, {}) : nullptr,
      runtime::Admission::kAgain);
}

}  // namespace kiln::sessions
