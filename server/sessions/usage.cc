#include "server/sessions/usage.h"

#include <map>
#include <utility>

namespace kiln::sessions {

std::vector<Usage> ListUsage(const Registry& registry) {
  std::map<std::pair<std::string, std::string>, Usage> usage;
  for (const auto& session : registry.List()) {
    const SessionStats now = session->GetStats();
    Usage& entry = usage[{session->user().name, session->device().name()}];
    ++entry.sessions;
    entry.memory_bytes += now.memory_bytes;
    entry.programs += now.programs;
    entry.waiting += now.waiting;
  }
  std::vector<Usage> list;
  for (const auto& user : registry.ListUsers()) {
    for (const auto& [device, use] : user->devices) {
      Usage& entry = list.emplace_back(std::move(usage[{user->name, device}]));
      entry.user = user->name;
      entry.device = device;
      entry.device_seconds = static_cast<double>(use.nanoseconds.load()) * 1e-9;
      entry.runs = use.runs.load();
      entry.wait_seconds = static_cast<double>(use.wait_nanoseconds.load()) * 1e-9;
    }
  }
  return list;
}

}  // namespace kiln::sessions
