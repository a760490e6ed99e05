// kiln top [--interval SECONDS] [--count N]
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/usage_table.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "kiln/v1/device.grpc.pb.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

constexpr double kLongestInterval = 3600;

struct TopOptions {
  double interval_seconds = 1;
  std::optional<int64_t> count;  // the number of tables; none: until it is interrupted
};

absl::Status SetOption(const std::string& name, const std::string& value, TopOptions* options) {
  int64_t count = 0;
  if (name == "--count" && absl::SimpleAtoi(value, &count) && count > 0) {
    options->count = count;
    return absl::OkStatus();
  }
  double seconds = 0;
  if (name == "--interval" && absl::SimpleAtod(value, &seconds) && seconds >= 0.1 &&
      seconds <= kLongestInterval) {
    options->interval_seconds = seconds;
    return absl::OkStatus();
  }
  if (name == "--count")
    return absl::InvalidArgumentError("--count takes a number of tables, at least 1");
  if (name == "--interval")
    return absl::InvalidArgumentError("--interval takes seconds, 0.1 to 3600");
  return absl::InvalidArgumentError(absl::StrCat("unexpected: ", name));
}

absl::StatusOr<TopOptions> ParseTopOptions(const std::vector<std::string>& arguments) {
  TopOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    std::string value;
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (absl::Status status = SetOption(name, value, &options); !status.ok()) return status;
  }
  return options;
}

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<UsageSample> Look(const Invocation& invocation) {
  UsageSample sample;
  grpc::ClientContext devices;
  SetDeadline(devices);
  const auto device_stub = v1::DeviceService::NewStub(invocation.channel);
  if (absl::Status status =
          invocation.Check(device_stub->ListDevices(&devices, {}, &sample.devices));
      !status.ok())
    return status;
  grpc::ClientContext users;
  SetDeadline(users);
  const auto admin_stub = v1::AdminService::NewStub(invocation.channel);
  if (absl::Status status = invocation.Check(admin_stub->ListUsers(&users, {}, &sample.users));
      !status.ok())
    return status;
  sample.seconds = SteadySeconds();
  return sample;
}

// Writes once, so that a terminal does not flicker.
absl::Status Show(const Invocation& invocation, const UsageSample& before, const UsageSample& now) {
  std::ostringstream text;
  text.copyfmt(invocation.out);  // with the columns and colours of the terminal
  if (invocation.terminal) text << kClearTerminal;
  text << invocation.address << "  "
       << absl::FormatTime("%H:%M:%S", invocation.now(), absl::LocalTimeZone()) << "\n\n";
  PrintLoads(now.devices, text);
  text << '\n';
  Table table = UsageTable(before, now);
  if (table.empty()) text << "no user has used a device yet\n";
  if (!table.empty())
    if (absl::Status status = invocation.PrintTable(table, text); !status.ok()) return status;
  if (!invocation.terminal) text << '\n';
  invocation.out << text.str() << std::flush;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTop(Invocation& invocation) {
  const auto options = ParseTopOptions(invocation.arguments);
  if (!options.ok()) return options.status();
  auto last = Look(invocation);
  if (!last.ok()) return last.status();
  if (invocation.json) return invocation.PrintJson(last->users);
  for (int64_t shown = 0; !options->count || shown < *options->count; ++shown) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options->interval_seconds));
    auto now = Look(invocation);
    if (now.ok()) {
      if (absl::Status status = Show(invocation, *last, *now); !status.ok()) return status;
      last = std::move(now);
      continue;
    }
    // A daemon that restarts is soon back, so keep watching.
    if (now.status().code() != absl::StatusCode::kUnavailable) return now.status();
    invocation.error << Printable(std::string(now.status().message())) << "; trying again"
                     << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace kiln::cli
