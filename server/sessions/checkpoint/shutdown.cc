#include "server/sessions/checkpoint/shutdown.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/clock/clock.h"
#include "server/log/log.h"
#include "server/sessions/checkpoint/capture.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "server/sessions/checkpoint/copy_deadline.h"
#include "server/sessions/checkpoint/session_recorder.h"
#include "server/sessions/closed_sessions.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// The time from the first of a run's results to its answer: normally a few microseconds, but the
// scheduler may delay it.
constexpr absl::Duration kEndOfRuns = absl::Seconds(1);

struct DeviceAtStop {
  bool hangs = false;
  CopyDeadline deadline;
};
using DevicesAtStop = std::map<const runtime::ManagedDevice*, DeviceAtStop>;

struct Frozen {
  std::shared_ptr<Session> session;
  DeviceAtStop* device;
  absl::StatusOr<Checkpoint> checkpoint;

  int64_t bytes() const { return checkpoint.ok() ? checkpoint->data_bytes() : 0; }
};

DevicesAtStop HaltDevices(const ShutdownOptions& options, absl::Time deadline) {
  for (runtime::ManagedDevice* device : options.devices) device->dispatcher().Suspend();
  DevicesAtStop halted;
  for (runtime::ManagedDevice* device : options.devices) {
    const bool is_idle = device->WaitIdle(deadline - options.steady_now());
    halted.emplace(device, DeviceAtStop{!is_idle, CopyDeadline(options.copy_timeout)});
  }
  return halted;
}

// Returns a device of the session that hangs, if there is one; otherwise any.
DeviceAtStop* DeviceOf(Session& session, DevicesAtStop& devices) {
  KILN_CHECK(devices.contains(&session.device())) << session.device().name();
  DeviceAtStop* device = &devices.at(&session.device());
  for (const DeviceShare* share : session.devices().All())
    if (!device->hangs) device = &devices.at(share->device);
  return device;
}

std::vector<Frozen> FreezeAll(const std::vector<std::shared_ptr<Session>>& all,
                              DevicesAtStop& devices, const absl::Status& restarting) {
  std::vector<Frozen> frozen;
  // One deadline for all sessions: their runs end concurrently.
  const absl::Time runs_end = SteadyNow() + kEndOfRuns;
  for (const auto& session : all) {
    auto checkpoint = Freeze(session->state(), restarting, runs_end - SteadyNow());
    frozen.push_back({session, DeviceOf(*session, devices), std::move(checkpoint)});
  }
  // Small sessions first, so that most are saved if the disk is full or the copies time out. Those
  // on hung devices come last, so that they take no time from others.
  std::stable_sort(frozen.begin(), frozen.end(), [](const Frozen& a, const Frozen& b) {
    return std::pair(a.device->hangs, a.bytes()) < std::pair(b.device->hangs, b.bytes());
  });
  return frozen;
}

void LogSaved(const Frozen& frozen, const absl::Status& saved, bool has_earlier) {
  const std::string& name = frozen.session->identity().name;
  if (has_earlier) {
    log::Info("session_kept", {{"session", name},
                               {"by", "its last checkpoint and its operation log since"},
                               {"because", std::string(saved.message())}});
  } else if (saved.ok()) {
    log::Info("session_kept", {{"session", name}, {"bytes", absl::StrCat(frozen.bytes())}});
  } else {
    log::Error("session_lost", {{"session", name},
                                {"why", std::string(saved.message())},
                                {"lost", "its tensors and programs; its client gets an error"}});
  }
}

void SaveOne(const ShutdownOptions& options, Frozen& frozen) {
  KILN_CHECK(frozen.session != nullptr && frozen.device != nullptr);
  Session& session = *frozen.session;
  absl::Status saved = frozen.checkpoint.status();
  if (saved.ok()) saved = options.store->Save(*frozen.checkpoint, frozen.device->deadline);
  // A session that would survive SIGKILL has a checkpoint already, and a log of all that it has
  // answered.
  const SessionRecorder* const recorder = RecorderOf(session.state());
  const bool has_earlier = !saved.ok() && recorder != nullptr && recorder->HasCheckpoint();
  LogSaved(frozen, saved, has_earlier);
  const bool stays = saved.ok() || has_earlier;
  const absl::Status reason =
      stays ? options.restarting
            : LostBecause("the previous daemon could not write its checkpoint", saved);
  // For a client that is disconnected now.
  if (!stays)
    options.registry->closed().Remember(session.identity().id, session.user().name, reason);
  session.Close(reason, /*files_stay=*/stays);
  frozen.checkpoint = absl::CancelledError();  // frees the memory
}

}  // namespace

void SaveSessionsForRestart(const ShutdownOptions& options, absl::Time deadline) {
  KILN_CHECK(options.store != nullptr && options.registry != nullptr);
  KILN_CHECK(!options.restarting.ok());
  options.store->BeginSavingAll();
  const std::vector<std::shared_ptr<Session>> all = options.registry->List();
  // Pauses all sessions before the first is saved, so that their devices become idle.
  for (const auto& session : all) session->Pause();
  DevicesAtStop devices = HaltDevices(options, deadline);
  for (Frozen& each : FreezeAll(all, devices, options.restarting)) SaveOne(options, each);
}

}  // namespace kiln::sessions
