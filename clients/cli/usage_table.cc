#include "clients/cli/usage_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "clients/cli/format.h"

namespace kiln::cli {
namespace {

using UserAndDevice = std::pair<std::string, std::string>;

struct Row {
  std::string user;
  const v1::DeviceUse* use = nullptr;
  double share = 0;
  double runs_per_second = 0;
};

std::map<UserAndDevice, const v1::DeviceUse*> ByUserAndDevice(const v1::ListUsersResponse& users) {
  std::map<UserAndDevice, const v1::DeviceUse*> uses;
  for (const v1::User& user : users.users()) {
    for (const v1::DeviceUse& use : user.devices()) uses[{user.name(), use.device()}] = &use;
  }
  return uses;
}

std::vector<Row> Rows(const UsageSample& before, const UsageSample& now) {
  const auto earlier = ByUserAndDevice(before.users);
  const double seconds = std::max(now.seconds - before.seconds, 1e-9);
  std::vector<Row> rows;
  for (const auto& [key, use] : ByUserAndDevice(now.users)) {
    if (use->sessions() == 0 && use->runs() == 0) continue;
    Row row{.user = key.first, .use = use};
    const auto found = earlier.find(key);
    const v1::DeviceUse& then =
        found == earlier.end() ? v1::DeviceUse::default_instance() : *found->second;
    row.share = std::max(use->device_seconds() - then.device_seconds(), 0.0) / seconds;
    if (use->runs() > then.runs())
      row.runs_per_second = static_cast<double>(use->runs() - then.runs()) / seconds;
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.share > b.share; });
  return rows;
}

}  // namespace

void PrintLoads(const v1::ListDevicesResponse& devices, std::ostream& out) {
  Table table({"device", ">load", ">queue", ">memory", ">of", "health"});
  for (const v1::Device& device : devices.devices()) {
    table.Add({device.name(), PercentCell(device.utilization()), CountCell(device.queue_length()),
               BytesCell(device.memory_used_bytes()), BytesCell(device.memory_total_bytes()),
               HealthCell(device)});
  }
  table.Print(out);
}

Table UsageTable(const UsageSample& before, const UsageSample& now) {
  Table table({"user", "device", ">share", ">runs/s", ">waiting", ">memory", ">sessions",
               ">programs", ">device time"});
  for (const Row& row : Rows(before, now)) {
    table.Add({row.user, row.use->device(), PercentCell(row.share),
               Cell(absl::StrFormat("%.1f", row.runs_per_second), row.runs_per_second),
               CountCell(row.use->waiting()), BytesCell(row.use->memory_bytes()),
               CountCell(row.use->sessions()), CountCell(row.use->programs()),
               DurationCell(row.use->device_seconds())});
  }
  return table;
}

}  // namespace kiln::cli
