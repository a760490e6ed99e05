#include "server/sessions/keep_all.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/clock/clock.h"
#include "server/log/log.h"
#include "server/sessions/ended_sessions.h"
#include "server/sessions/image.h"
#include "server/sessions/patience.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// The time from the first of a run's results to its answer: normally a few microseconds, but the
// scheduler may delay it.
constexpr absl::Duration kEndOfRuns = absl::Seconds(1);

struct DeviceAtStop {
  bool hangs = false;
  Patience patience;
};
using DevicesAtStop = std::map<const runtime::ManagedDevice*, DeviceAtStop>;

struct Frozen {
  std::shared_ptr<Session> session;
  DeviceAtStop* device;
  absl::StatusOr<SessionImage> image;

  int64_t bytes() const { return image.ok() ? image->data_bytes() : 0; }
};

DevicesAtStop HaltDevices(const KeepAllOptions& options, absl::Time deadline) {
  for (runtime::ManagedDevice* device : options.devices) device->dispatcher().Suspend();
  DevicesAtStop halted;
  for (runtime::ManagedDevice* device : options.devices) {
    const bool is_idle = device->WaitIdle(deadline - options.steady_now());
    halted.emplace(device, DeviceAtStop{!is_idle, Patience(options.copy_patience)});
  }
  return halted;
}

// Returns a device of the session that hangs, if there is one; otherwise any.
DeviceAtStop* DeviceOf(Session& session, DevicesAtStop& devices) {
  DeviceAtStop* device = &devices.at(&session.device());
  for (const UsedDevice* used : session.devices().All())
    if (!device->hangs) device = &devices.at(used->device);
  return device;
}

std::vector<Frozen> Freeze(const std::vector<std::shared_ptr<Session>>& all, DevicesAtStop& devices,
                           const absl::Status& restarting) {
  std::vector<Frozen> frozen;
  // One deadline for all sessions: their runs end concurrently.
  const absl::Time runs_end = SteadyNow() + kEndOfRuns;
  for (const auto& session : all) {
    auto image = session->Freeze(restarting, runs_end - SteadyNow());
    frozen.push_back({session, DeviceOf(*session, devices), std::move(image)});
  }
  // Small sessions first, so that most are saved if the disk is full or the copies time out. Those
  // on hung devices come last, so that they take no time from others.
  std::stable_sort(frozen.begin(), frozen.end(), [](const Frozen& a, const Frozen& b) {
    return std::pair(a.device->hangs, a.bytes()) < std::pair(b.device->hangs, b.bytes());
  });
  return frozen;
}

void Log(const Frozen& frozen, const absl::Status& saved, bool is_protected) {
  const std::string& name = frozen.session->identity().name;
  if (is_protected) {
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

void KeepOne(const KeepAllOptions& options, Frozen& frozen) {
  Session& session = *frozen.session;
  absl::Status saved = frozen.image.status();
  if (saved.ok()) saved = options.kept->Save(*frozen.image, frozen.device->patience);
  // A session that would survive SIGKILL has an image already, and a journal of all that it has
  // answered.
  const bool is_protected = !saved.ok() && session.IsProtected();
  Log(frozen, saved, is_protected);
  const bool stays = saved.ok() || is_protected;
  const absl::Status reason =
      stays ? options.restarting
            : LostBecause("the previous daemon could not write its checkpoint", saved);
  // For a client that is disconnected now.
  if (!stays)
    options.registry->ended().Remember(session.identity().id, session.user().name, reason);
  session.Close(reason, /*files_stay=*/stays);
  frozen.image = absl::CancelledError();  // frees the memory
}

}  // namespace

void KeepAll(const KeepAllOptions& options, absl::Time deadline) {
  options.kept->BeginSavingAll();
  const std::vector<std::shared_ptr<Session>> all = options.registry->List();
  // Pauses all sessions before the first is saved, so that their devices become idle.
  for (const auto& session : all) session->Pause();
  DevicesAtStop devices = HaltDevices(options, deadline);
  for (Frozen& each : Freeze(all, devices, options.restarting)) KeepOne(options, each);
}

}  // namespace kiln::sessions
