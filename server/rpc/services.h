// What the RPC services translate to, and how they are made. Everything outlives them.
#ifndef KILN_SERVER_RPC_SERVICES_H_
#define KILN_SERVER_RPC_SERVICES_H_

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
#include "server/rpc/open_calls.h"
#include "server/rpc/open_uploads.h"
#include "server/runtime/driver_report.h"
#include "server/runtime/managed_device.h"
#include "server/runtime/program_cache.h"
#include "server/sessions/registry.h"

namespace kiln::rpc {

// Largest message taken, and the chunk used in both directions.
inline constexpr int64_t kMaxMessageBytes = 64 << 20;
inline constexpr int64_t kChunkBytes = 1 << 20;
// Unary calls whose request and answer take no more are not charged.
inline constexpr int64_t kSmallAnswer = 16 << 10;

// What the services see of the daemon. All of it outlives them.
struct DaemonView {
  sessions::Registry* registry = nullptr;
  runtime::ProgramCache* programs = nullptr;
  buffers::BlobStore* blobs = nullptr;
  cache::KernelCache* kernel_cache = nullptr;
  metrics::Metrics* metrics = nullptr;
  runtime::ThreadPool* copies = nullptr;
  // Verifies uploads, which can take seconds: nothing short waits behind it.
  runtime::FairPool* digests = nullptr;
  // Explains programs, which generates their sources again: on gRPC's threads, many such calls of
  // one user would keep everybody's messages waiting.
  runtime::FairPool* explanations = nullptr;
  auth::Authenticator* users = nullptr;
  auth::AuditLog* audit = nullptr;
  quota::LimitStore* limits = nullptr;
  Access* access = nullptr;
  OpenUploads* open_uploads = nullptr;
  OpenCalls* open_calls = nullptr;  // of the streams that answer
  std::vector<runtime::ManagedDevice*> devices;
  std::vector<runtime::DriverReport> drivers;
  Clock clock;
  std::function<absl::StatusOr<std::string>(const drivers::KernelImage&, const drivers::Target&)>
      disassemble;
  std::string version;
  uint32_t op_set_version = 1;
  absl::Time started;
  int64_t transport_bytes = int64_t{512} << 20;  // that gRPC's buffers may take
  std::function<std::vector<std::string>()> listening;
  // Of disk, that a user's kept sessions take.
  std::function<int64_t(const std::string& user)> kept_bytes = [](const std::string&) {
    return int64_t{0};
  };
  // Has the daemon end soon, and keep its sessions; an error if it cannot keep them.
  std::function<absl::Status()> stop;
};

std::unique_ptr<grpc::Service> MakeDeviceService(const DaemonView& daemon);
std::unique_ptr<grpc::Service> MakeSessionService(const DaemonView& daemon);
std::unique_ptr<grpc::Service> MakeBlobService(const DaemonView& daemon);
std::unique_ptr<grpc::Service> MakeProgramService(const DaemonView& daemon);
std::unique_ptr<grpc::Service> MakeAdminService(const DaemonView& daemon);

// The call's end: counts a failure.
grpc::Status End(const DaemonView& daemon, const absl::Status& status);

// Ends a unary call.
grpc::ServerUnaryReactor* Reply(const DaemonView& daemon, grpc::CallbackServerContext* context,
                                const absl::Status& status);
// The same with an answer that may be large. It is charged to the caller's user until he has taken
// it: many calls whose answers nobody reads would take all memory. RESOURCE_EXHAUSTED in its place
// if that does not fit.
grpc::ServerUnaryReactor* ReplyCharged(const DaemonView& daemon,
                                       grpc::CallbackServerContext* context,
                                       const auth::Principal& caller, const absl::Status& status,
                                       google::protobuf::Message* response);
// Of a unary call: holds a charge until the call is over. Deletes itself.
class ChargedReactor : public grpc::ServerUnaryReactor {
 public:
  ChargedReactor(const DaemonView& daemon, memory::Charge charge)
      : metrics_(*daemon.metrics), charge_(std::move(charge)) {}
  // Ends the call with an answer that may be large, as ReplyCharged does; once, from any thread.
  // The charge is `user`'s.
  void Answer(const DaemonView& daemon, const sessions::User& user, absl::Status status,
              google::protobuf::Message* response);
  // Nobody waits for the answer any more.
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
};
// Ends a call that streams its answers before the first of them. Deletes itself.
template <typename Response>
class Refusal : public grpc::ServerWriteReactor<Response> {
 public:
  explicit Refusal(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

// The session of a call, whose lease is renewed by it. Another user's is NOT_FOUND, as an unknown
// one is, whatever the caller's role.
absl::StatusOr<std::shared_ptr<sessions::Session>> FindSession(
    const DaemonView& daemon, const absl::StatusOr<auth::Principal>& caller, const std::string& id);

// Those that the caller may see: a user his own (Principal::sees_all), nobody the daemon's.
std::vector<std::shared_ptr<sessions::Session>> VisibleSessions(const DaemonView& daemon,
                                                                const auth::Principal& caller);
std::vector<std::shared_ptr<runtime::Program>> VisiblePrograms(const DaemonView& daemon,
                                                               const auth::Principal& caller);

// Writes what the caller has changed for others, or tried to, to the audit log.
void Audit(const DaemonView& daemon, const auth::Principal& caller, const std::string& action,
           const std::string& subject, const absl::Status& outcome);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_H_
