// The RPC services: what each uses of the daemon, functions to create them, and what they share.
#ifndef KILN_SERVER_RPC_SERVICES_SERVICES_H_
#define KILN_SERVER_RPC_SERVICES_SERVICES_H_

#include <google/protobuf/message.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/auth/audit_log.h"
#include "server/auth/authenticator.h"
#include "server/auth/principal.h"
#include "server/buffers/blob_store.h"
#include "server/cache/kernel_cache.h"
#include "server/clock/clock.h"
#include "server/memory/host_memory.h"
#include "server/metrics/metrics.h"
#include "server/quota/limit_store.h"
#include "server/rpc/access.h"
#include "server/rpc/services/open_calls.h"
#include "server/rpc/services/open_uploads.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/driver_report.h"
#include "server/runtime/device/managed_device.h"
#include "server/sessions/registry.h"
#include "server/tuner/rooflines.h"
#include "server/tuner/setting_store.h"
#include "server/tuner/tuner.h"

namespace kiln::rpc {

// The largest accepted message, and the chunk size in both directions.
inline constexpr int64_t kMessageBytesMax = 64 << 20;
inline constexpr int64_t kChunkBytes = 1 << 20;
// Unary calls whose request and response are at most this large are not charged.
inline constexpr int64_t kSmallAnswer = 16 << 10;

// What every service uses of the daemon. These parts, and those of each service below, outlive the
// services and their calls.
struct ServiceParts {
  sessions::Registry* registry = nullptr;
  Access* access = nullptr;
  metrics::Metrics* metrics = nullptr;
  Clock clock{};
};
struct DeviceServiceParts : ServiceParts {
  std::vector<runtime::ManagedDevice*> devices{};
  std::vector<runtime::DriverReport> drivers{};
};
struct SessionServiceParts : ServiceParts {
  runtime::ThreadPool* copies = nullptr;
  auth::AuditLog* audit = nullptr;
  OpenCalls* open_calls = nullptr;  // the streams that have answers to send
  std::string version{};
  uint32_t op_set_version = 1;
};
struct BlobServiceParts : ServiceParts {
  buffers::BlobStore* blobs = nullptr;
  runtime::ThreadPool* copies = nullptr;
  // Verifies uploads, which can take seconds; short tasks must not wait for it.
  runtime::FairPool* digests = nullptr;
  OpenUploads* open_uploads = nullptr;
  OpenCalls* open_calls = nullptr;
};
struct ProgramServiceParts : ServiceParts {
  runtime::ProgramCache* programs = nullptr;
  // Explains programs, which generates their sources again. On gRPC's threads, many such calls of
  // one user would delay everyone's messages.
  runtime::FairPool* explanations = nullptr;
  std::function<absl::StatusOr<std::string>(const drivers::KernelImage&, const drivers::Target&)>
      disassemble{};
  // Null: the daemon does not search for schedules.
  tuner::Tuner* program_tuner = nullptr;
  // Has a thread for each device.
  runtime::ThreadPool* tunings = nullptr;
  tuner::SettingStore* settings = nullptr;
  auth::AuditLog* audit = nullptr;
  // Of one tuning that a user asks for.
  uint32_t tuning_seconds_max = 3600;
  tuner::Rooflines* rooflines = nullptr;
};
struct AdminServiceParts : ServiceParts {
  runtime::ProgramCache* programs = nullptr;
  cache::KernelCache* kernel_cache = nullptr;
  tuner::SettingStore* settings = nullptr;
  // Calls that would delay everyone's messages on gRPC's threads.
  runtime::FairPool* slow_calls = nullptr;
  auth::Authenticator* users = nullptr;
  auth::AuditLog* audit = nullptr;
  quota::LimitStore* limits = nullptr;
  std::vector<runtime::ManagedDevice*> devices{};
  std::string version{};
  uint32_t op_set_version = 1;
  absl::Time started{};
  std::function<std::vector<std::string>()> listening{};
  // Bytes on disk of a user's saved sessions.
  std::function<int64_t(const std::string& user)> saved_bytes{};
  // Stops the daemon soon, saving its sessions; returns an error if it cannot save them.
  std::function<absl::Status()> stop{};
};

std::unique_ptr<grpc::Service> MakeDeviceService(const DeviceServiceParts& parts);
std::unique_ptr<grpc::Service> MakeSessionService(const SessionServiceParts& parts);
std::unique_ptr<grpc::Service> MakeBlobService(const BlobServiceParts& parts);
std::unique_ptr<grpc::Service> MakeProgramService(const ProgramServiceParts& parts);
std::unique_ptr<grpc::Service> MakeAdminService(const AdminServiceParts& parts);

// Returns the status that ends a call; counts a failure.
grpc::Status End(const ServiceParts& parts, const absl::Status& status);

// Ends a unary call.
grpc::ServerUnaryReactor* Reply(const ServiceParts& parts, grpc::CallbackServerContext* context,
                                const absl::Status& status);
// The same with a response that may be large. It is charged to the caller's user until the client
// has read it, since many calls with unread responses would use all memory. If it does not fit, the
// call ends with RESOURCE_EXHAUSTED.
grpc::ServerUnaryReactor* ReplyCharged(const ServiceParts& parts,
                                       grpc::CallbackServerContext* context,
                                       const auth::Principal& caller, const absl::Status& status,
                                       google::protobuf::Message* response);
// The reactor of a unary call that holds a charge until the call is over. Deletes itself.
class ChargedReactor : public grpc::ServerUnaryReactor {
 public:
  ChargedReactor(const ServiceParts& parts, memory::Charge charge)
      : metrics_(*parts.metrics), charge_(std::move(charge)) {}
  // Ends the call with a response that may be large, as ReplyCharged does. Call once, from any
  // thread. The charge is `user`'s.
  void Answer(const ServiceParts& parts, const sessions::User& user, absl::Status status,
              google::protobuf::Message* response);
  // Whether the call was cancelled.
  bool is_unwanted() const { return is_unwanted_; }
  void OnCancel() override {
    is_unwanted_ = true;
    metrics_.Abandoned();
  }
  void OnDone() override { delete this; }

 private:
  metrics::Metrics& metrics_;
  memory::Charge charge_;
  std::atomic<bool> is_unwanted_{false};
  std::atomic<bool> is_answered_{false};
};
// Ends a call with streamed responses before the first one. Deletes itself.
template <typename Response>
class Refusal : public grpc::ServerWriteReactor<Response> {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

// Returns the session of a call and renews its lease. Another user's session is NOT_FOUND, like an
// unknown one, whatever the caller's role.
absl::StatusOr<std::shared_ptr<sessions::Session>> FindSession(
    const ServiceParts& parts, const absl::StatusOr<auth::Principal>& caller,
    const std::string& id);

// Returns the sessions that the caller may see: users see only their own (Principal::sees_all).
std::vector<std::shared_ptr<sessions::Session>> VisibleSessions(const ServiceParts& parts,
                                                                const auth::Principal& caller);

// Writes an action of the caller that affects others, or its failure, to the audit log.
void Audit(auth::AuditLog& log, const Clock& clock, const auth::Principal& caller,
           const std::string& action, const std::string& subject, const absl::Status& outcome);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_SERVICES_H_
