#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "server/errors/errors.h"
#include "server/rpc/services.h"
#include "server/rpc/status.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

absl::Status OneUser() {
  return errors::WithReason(
      absl::UnimplementedError("this daemon has one local user, no quotas and no audit log"),
      "ONE_USER");
}

class AdminService final : public v1::AdminService::CallbackService {
 public:
  explicit AdminService(const DaemonView& daemon) : daemon_(daemon) {}

  ServerUnaryReactor* GetDaemon(CallbackServerContext* context, const v1::GetDaemonRequest* request,
                                v1::GetDaemonResponse* response) override {
    response->set_version(daemon_.version);
    *response->mutable_started() = ToProto(daemon_.started);
    response->set_op_set_version(daemon_.op_set_version);
    for (const std::string& address : daemon_.listening()) response->add_listening(address);
    response->set_cache_path(daemon_.kernel_cache->GetStatistics().path);
    // The daemon is draining when none of its devices takes new work.
    bool draining = true;
    for (runtime::ManagedDevice* device : daemon_.devices) {
      draining = draining && device->health() != runtime::Health::kHealthy;
    }
    response->set_draining(draining);
    return Reply(daemon_, context, absl::OkStatus());
  }

  ServerUnaryReactor* Drain(CallbackServerContext* context, const v1::DrainRequest* request,
                            v1::DrainResponse* response) override {
    // No name means all devices.
    bool found = request->device().empty();
    for (runtime::ManagedDevice* device : daemon_.devices) {
      if (!request->device().empty() && device->name() != request->device()) continue;
      found = true;
      device->SetDraining(!request->undo());
    }
    if (found) return Reply(daemon_, context, absl::OkStatus());
    return Reply(daemon_, context,
                 errors::WithReason(absl::NotFoundError(absl::StrCat("there is no device ",
                                                                     Quoted(request->device()))),
                                    "UNKNOWN_DEVICE", {{"device", request->device()}}));
  }

  ServerUnaryReactor* GetCache(CallbackServerContext* context, const v1::GetCacheRequest* request,
                               v1::GetCacheResponse* response) override {
    const cache::KernelCache::Statistics statistics = daemon_.kernel_cache->GetStatistics();
    response->set_path(statistics.path);
    response->set_kernels(static_cast<uint64_t>(statistics.kernels));
    response->set_bytes(static_cast<uint64_t>(statistics.bytes));
    response->set_hits(static_cast<uint64_t>(statistics.hits));
    response->set_misses(static_cast<uint64_t>(statistics.misses));
    return Reply(daemon_, context, absl::OkStatus());
  }

  ServerUnaryReactor* ClearCache(CallbackServerContext* context,
                                 const v1::ClearCacheRequest* request,
                                 v1::ClearCacheResponse* response) override {
    const auto deleted = daemon_.kernel_cache->Clear();
    if (deleted.ok()) response->set_kernels_deleted(static_cast<uint64_t>(*deleted));
    return Reply(daemon_, context, deleted.status());
  }

  ServerUnaryReactor* ListUsers(CallbackServerContext* context, const v1::ListUsersRequest* request,
                                v1::ListUsersResponse* response) override {
    for (const auto& user : daemon_.registry->ListUsers()) {
      v1::User* proto = response->add_users();
      proto->set_name(user->name);
      proto->mutable_quota()->set_weight(1);
      proto->set_memory_bytes(static_cast<uint64_t>(user->account->bytes()));
      proto->set_device_seconds(static_cast<double>(user->device_nanoseconds.load()) * 1e-9);
    }
    return Reply(daemon_, context, absl::OkStatus());
  }

  ServerUnaryReactor* SetQuota(CallbackServerContext* context, const v1::SetQuotaRequest* request,
                               v1::SetQuotaResponse* response) override {
    return Reply(daemon_, context, OneUser());
  }

  grpc::ServerWriteReactor<v1::AuditEvent>* ListAuditEvents(
      CallbackServerContext* context, const v1::ListAuditEventsRequest* request) override {
    return new Refusal<v1::AuditEvent>(End(daemon_, OneUser()));
  }

 private:
  const DaemonView& daemon_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(const DaemonView& daemon) {
  return std::make_unique<AdminService>(daemon);
}

}  // namespace kiln::rpc
