#include <algorithm>
#include <map>
#include <utility>

#include "kiln/v1/device.grpc.pb.h"
#include "proto/text/printable.h"
#include "server/rpc/messages/status.h"
#include "server/rpc/services/answers.h"
#include "server/rpc/services/bounded_method.h"
#include "server/rpc/services/services.h"
#include "server/rpc/services/watch.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;

v1::Device::Health HealthToProto(runtime::Health health) {
  switch (health) {
    case runtime::Health::kHealthy:
      return v1::Device::HEALTHY;
    case runtime::Health::kDraining:
      return v1::Device::DRAINING;
    case runtime::Health::kFailed:
      return v1::Device::FAILED;
  }
  return v1::Device::HEALTH_UNSPECIFIED;
}

v1::Device Describe(runtime::ManagedDevice& device, absl::Time now) {
  v1::Device proto;
  const drivers::DeviceInfo& info = device.info();
  proto.set_name(info.name);
  proto.set_model(info.model);
  proto.set_target(info.target.Summary());
  proto.set_memory_total_bytes(static_cast<uint64_t>(device.pool()->total_bytes()));
  proto.set_memory_used_bytes(static_cast<uint64_t>(device.pool()->used_bytes()));
  proto.set_compute_units(static_cast<uint32_t>(info.target.limits.compute_units));
  proto.set_health(HealthToProto(device.health()));
  proto.set_health_message(device.health_message());
  proto.set_queue_length(static_cast<uint32_t>(device.dispatcher().queued()));
  proto.set_utilization(device.Utilization(now));
  return proto;
}

// Checks the devices once every interval and sends those that have changed.
class DeviceWatch : public Watch<v1::WatchDevicesResponse> {
 public:
  DeviceWatch(const DeviceServiceParts& parts, const CallbackServerContext& context,
              absl::Duration interval)
      : Watch(interval), parts_(parts), context_(context) {
    Look();
  }

 private:
  Next Fill(v1::WatchDevicesResponse* response, grpc::Status* end) override {
    // Checked each time, since the caller may be revoked.
    if (const auto caller = parts_.access->Caller(context_); !caller.ok()) {
      *end = rpc::End(parts_, caller.status());
      return Next::kEnd;
    }
    for (runtime::ManagedDevice* device : parts_.devices) {
      v1::Device now = Describe(*device, parts_.clock.steady());
      std::string& sent = sent_[now.name()];
      // Comparing the bytes covers all fields of a device.
      std::string bytes = now.SerializeAsString();
      if (bytes == sent) continue;
      sent = std::move(bytes);
      *response->add_devices() = std::move(now);
    }
    return response->devices().empty() ? Next::kWait : Next::kSend;
  }

  const DeviceServiceParts& parts_;
  const CallbackServerContext& context_;
  std::map<std::string, std::string> sent_;
};

class DeviceService final : public v1::DeviceService::CallbackService {
 public:
  explicit DeviceService(const DeviceServiceParts& parts) : parts_(parts) {
    const auto bound = [this](const char* name, auto method) {
      MarkMethodCallback(MethodIndex(v1::DeviceService::service_full_name(), name),
                         Bounded(parts_, this, method));
    };
    bound("ListDevices", &DeviceService::ListDevices);
    bound("WatchDevices", &DeviceService::WatchDevices);
  }

  grpc::ServerUnaryReactor* ListDevices(CallbackServerContext* context,
                                        const v1::ListDevicesRequest* request,
                                        v1::ListDevicesResponse* response) override {
    rpc::ListDevices(parts_, response);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<v1::WatchDevicesResponse>* WatchDevices(
      CallbackServerContext* context, const v1::WatchDevicesRequest* request) override {
    // An interval of 0, the default, must not cause a busy loop.
    return new DeviceWatch(parts_, *context,
                           std::clamp(absl::Milliseconds(request->min_interval_ms()),
                                      absl::Milliseconds(100), absl::Seconds(10)));
  }

 private:
  const DeviceServiceParts& parts_;
};

}  // namespace

void ListDevices(const DeviceServiceParts& parts, v1::ListDevicesResponse* response) {
  for (runtime::ManagedDevice* device : parts.devices)
    *response->add_devices() = Describe(*device, parts.clock.steady());
  for (const runtime::DriverReport& report : parts.drivers) {
    v1::Driver* driver = response->add_drivers();
    driver->set_name(report.driver);
    driver->set_devices(static_cast<uint32_t>(report.devices));
    driver->set_why_not_more(Printable(report.why_not_more));
  }
}

std::unique_ptr<grpc::Service> MakeDeviceService(const DeviceServiceParts& parts) {
  return std::make_unique<DeviceService>(parts);
}

}  // namespace kiln::rpc
