// Users' limits on the wire.
#ifndef KILN_SERVER_RPC_QUOTAS_H_
#define KILN_SERVER_RPC_QUOTAS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "kiln/v1/admin.pb.h"
#include "server/rpc/services.h"

namespace kiln::rpc {

// Sets them, from now on and over restarts. INVALID_ARGUMENT: the user's name, or a resource that
// there is not; RESOURCE_EXHAUSTED, UNAVAILABLE: they cannot be kept.
absl::Status SetLimits(const DaemonView& daemon, const v1::SetQuotaRequest& request);
// "ann sessions=8 buffers=default".
std::string ChangesText(const v1::SetQuotaRequest& request);

// Those who may come, have come, or have limits of their own.
std::set<std::string> UsersWithQuotas(const DaemonView& daemon);
void Fill(const DaemonView& daemon, const std::string& user, v1::UserQuotas* proto);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_QUOTAS_H_
