#include "server/sessions/operations/make_run.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// Checks the devices of the inputs of a program on one device, or in stages.
absl::Status CheckInputDevices(const runtime::Program& program,
                               absl::Span<const runtime::ValuePointer> inputs) {
  const runtime::Signature& signature = program.signature();
  // Then runtime::CheckInputs has checked the parts.
  if (!signature.input_placements.empty()) return absl::OkStatus();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int member = signature.input_members.empty() ? 0 : signature.input_members[i];
    const runtime::ManagedDevice& wanted = program.sharded().device(member);
    if (inputs[i]->pool() == wanted.pool().get() || inputs[i]->pool() == nullptr) continue;
    return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  "input ", i, " is on ", inputs[i]->pool()->device().info().name,
                                  ", but the program needs it on ", wanted.name(),
                                  "; copy it there (kiln.shard, Tensor.to)")),
                              "INPUT_PLACEMENT", {{"input", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInputs(const runtime::BoundProgram& program,
                         absl::Span<const runtime::ValuePointer> inputs) {
  const absl::Status status = runtime::CheckInputs(program.signature, inputs);
  return status.ok() ? CheckInputDevices(*program.program, inputs) : status;
}

absl::StatusOr<QueueableRun> MakeRun(SessionState& session, uint64_t sequence,
                                     const std::shared_ptr<const runtime::BoundProgram>& program,
                                     std::vector<runtime::ValuePointer> inputs,
                                     runtime::Run::Done done, int references) {
  KILN_CHECK(program != nullptr && done != nullptr);
  absl::InlinedVector<const DeviceShare*, 1> shares;
  absl::InlinedVector<std::shared_ptr<buffers::Account>, 1> accounts;
  for (const runtime::ShardedProgram::Member& member : program->program->sharded().members()) {
    shares.push_back(&session.devices.Of(*member.device));
    accounts.push_back(shares.back()->account);
  }
  auto run = runtime::Run::Create(absl::StrCat(session.identity.name, "/", sequence), program,
                                  std::move(inputs), accounts, session.services.submission_order,
                                  std::move(done), references);
  if (!run.ok()) return run.status();
  KILN_CHECK(*run != nullptr);
  return QueueableRun{*run, [shares = std::move(shares), run = *run] {
                        const auto work = run->MakeWork();
                        KILN_CHECK_EQ(work.size(), shares.size()) << run->label();
                        for (size_t i = 0; i < work.size(); ++i)
                          shares[i]->device->dispatcher().Enqueue(shares[i]->flow, work[i]);
                      }};
}

}  // namespace kiln::sessions
