#include "server/sessions/operations/make_run.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/runtime/gang.h"
#include "server/runtime/gang_run.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

// Checks the devices of the inputs of a program on one device, or in stages. For other programs
// runtime::CheckInputs does this.
absl::Status CheckInputDevices(const runtime::Program& program,
                               absl::Span<const runtime::ValuePointer> inputs) {
  const std::vector<int>& members = program.signature().input_members;
  if (program.gang() != nullptr && members.empty()) return absl::OkStatus();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const runtime::ManagedDevice& wanted =
        members.empty() ? program.device() : *program.gang()->members()[members[i]].device;
    if (inputs[i]->pool() == wanted.pool().get() || inputs[i]->pool() == nullptr) continue;
    return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  "input ", i, " lies on ", inputs[i]->pool()->device().info().name,
                                  ", but the program wants it on ", wanted.name(),
                                  "; Move makes a copy that lies so (kiln.shard, Tensor.to)")),
                              "INPUT_PLACEMENT", {{"input", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

absl::StatusOr<QueueableRun> MakeOnOne(SessionState& session, std::string label,
                                       const std::shared_ptr<const runtime::BoundProgram>& program,
                                       std::vector<runtime::ValuePointer> inputs, RunEnd end) {
  runtime::ManagedDevice* const device = &program->program->device();
  const DeviceShare& share = session.devices.Of(*device);
  auto run = runtime::Run::Create(
      std::move(label), program, std::move(inputs), share.account,
      [device, end = std::move(end)](const absl::Status& status, double seconds) {
        end(status, {&device, 1}, {&seconds, 1});
      });
  if (!run.ok()) return run.status();
  return QueueableRun{
      *run, [&share, run = *run] { share.device->dispatcher().Enqueue(share.flow, run); }};
}

absl::StatusOr<QueueableRun> MakeOnSeveral(
    SessionState& session, std::string label,
    const std::shared_ptr<const runtime::BoundProgram>& program,
    std::vector<runtime::ValuePointer> inputs, RunEnd end) {
  std::vector<const DeviceShare*> shares;
  std::vector<runtime::ManagedDevice*> devices;
  std::vector<std::shared_ptr<buffers::Account>> accounts;
  for (const runtime::Gang::Member& member : program->program->gang()->members()) {
    shares.push_back(&session.devices.Of(*member.device));
    devices.push_back(member.device);
    accounts.push_back(shares.back()->account);
  }
  auto run = runtime::GangRun::Create(
      std::move(label), program, std::move(inputs), accounts, session.services.gang_order,
      [devices = std::move(devices), end = std::move(end)](const absl::Status& status,
                                                           absl::Span<const double> seconds) {
        end(status, devices, seconds);
      });
  if (!run.ok()) return run.status();
  return QueueableRun{*run, [shares = std::move(shares), run = *run] {
                        const auto work = run->MakeWork();
                        for (size_t i = 0; i < work.size(); ++i)
                          shares[i]->device->dispatcher().Enqueue(shares[i]->flow, work[i]);
                      }};
}

}  // namespace

absl::Status CheckInputs(const runtime::BoundProgram& program,
                         absl::Span<const runtime::ValuePointer> inputs) {
  const absl::Status status = runtime::CheckInputs(program.signature, inputs);
  return status.ok() ? CheckInputDevices(*program.program, inputs) : status;
}

absl::StatusOr<QueueableRun> MakeRun(SessionState& session, uint64_t sequence,
                                     const std::shared_ptr<const runtime::BoundProgram>& program,
                                     std::vector<runtime::ValuePointer> inputs, RunEnd end) {
  std::string label = absl::StrCat(session.identity.name, "/", sequence);
  const bool has_one = program->program->gang() == nullptr;
  return (has_one ? MakeOnOne : MakeOnSeveral)(session, std::move(label), program,
                                               std::move(inputs), std::move(end));
}

}  // namespace kiln::sessions
