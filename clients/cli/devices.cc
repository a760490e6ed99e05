// kiln devices
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "kiln/v1/device.grpc.pb.h"

namespace kiln::cli {

absl::Status RunDevices(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListDevicesResponse answer;
  auto stub = v1::DeviceService::NewStub(invocation.channel);
  if (absl::Status status = invocation.Check(stub->ListDevices(&context, {}, &answer));
      !status.ok())
    return status;
  if (invocation.json) return invocation.PrintJson(answer);

  Table table(
      {"device", "model", "target", ">units", ">memory used", ">of", ">queue", ">load", "health"});
  for (const v1::Device& device : answer.devices()) {
    table.Add({device.name(), device.model(), device.target(), CountCell(device.compute_units()),
               BytesCell(device.memory_used_bytes()), BytesCell(device.memory_total_bytes()),
               CountCell(device.queue_length()), PercentCell(device.utilization()),
               HealthCell(device)});
  }
  if (absl::Status status = invocation.PrintTable(table); !status.ok()) return status;
  Table drivers({"driver", ">devices", "why not more"});
  for (const v1::Driver& driver : answer.drivers())
    drivers.Add({driver.name(), absl::StrCat(driver.devices()), driver.why_not_more()});
  // An older daemon does not list drivers.
  if (drivers.empty()) return absl::OkStatus();
  invocation.out << "\n";
  drivers.Print(invocation.out);
  return absl::OkStatus();
}

}  // namespace kiln::cli
