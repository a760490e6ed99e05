// Shows each user's use of each device, from two samples of the daemon's counters.
#ifndef KILN_CLIENTS_CLI_USAGE_TABLE_H_
#define KILN_CLIENTS_CLI_USAGE_TABLE_H_

#include <ostream>

#include "clients/cli/table.h"
#include "kiln/v1/admin.pb.h"
#include "kiln/v1/device.pb.h"

namespace kiln::cli {

struct UsageSample {
  v1::ListDevicesResponse devices;
  v1::ListUsersResponse users;
  double seconds = 0;  // when it was taken, on a monotonic clock
};

// Prints a table of the devices' load and memory.
void PrintLoads(const v1::ListDevicesResponse& devices, std::ostream& out);
// Returns a row for each user and device, the greatest share first. Share and rate are those
// between the samples; counters that went back, as they do when the daemon restarts, count as 0.
Table UsageTable(const UsageSample& before, const UsageSample& now);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_USAGE_TABLE_H_
