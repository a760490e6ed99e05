// Users' limits on the wire.
#ifndef KILN_SERVER_RPC_SERVICES_QUOTAS_H_
#define KILN_SERVER_RPC_SERVICES_QUOTAS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "kiln/v1/admin.pb.h"
#include "server/rpc/services/services.h"

namespace kiln::rpc {

// Sets limits, effective at once and across restarts. INVALID_ARGUMENT: the user's name, or an
// unknown resource; RESOURCE_EXHAUSTED, UNAVAILABLE: the limits cannot be stored.
absl::Status SetLimits(const AdminServiceParts& parts, const v1::SetQuotaRequest& request);
// "ann sessions=8 buffers=default".
std::string ChangesText(const v1::SetQuotaRequest& request);

// Returns users who may connect, who have sessions, or who have their own limits.
std::set<std::string> UsersWithQuotas(const AdminServiceParts& parts);
void Fill(const AdminServiceParts& parts, const std::string& user, v1::UserQuotas* proto);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_QUOTAS_H_
