#include "server/auth/method_table.h"

namespace kiln::auth {
namespace {

// In addition, handlers restrict users to their own sessions and data
// (server/rpc/services/services.h).
constexpr MethodRule kTable[] = {
    {"/kiln.v1.DeviceService/ListDevices", Role::kViewer},
    {"/kiln.v1.DeviceService/WatchDevices", Role::kViewer},
    {"/kiln.v1.SessionService/OpenSession", Role::kUser},
    {"/kiln.v1.SessionService/AttachSession", Role::kUser},
    {"/kiln.v1.SessionService/RenewSession", Role::kUser},
    {"/kiln.v1.SessionService/CloseSession", Role::kUser},
    {"/kiln.v1.SessionService/EndSession", Role::kUser},
    {"/kiln.v1.SessionService/ListSessions", Role::kViewer},
    {"/kiln.v1.SessionService/Connect", Role::kUser},
    {"/kiln.v1.BlobService/FindBlobs", Role::kUser},
    {"/kiln.v1.BlobService/Upload", Role::kUser},
    {"/kiln.v1.BlobService/Download", Role::kUser},
    {"/kiln.v1.BlobService/DeleteBlobs", Role::kUser},
    {"/kiln.v1.ProgramService/ListPrograms", Role::kViewer},
    {"/kiln.v1.ProgramService/CompileProgram", Role::kUser},
    {"/kiln.v1.ProgramService/ExplainProgram", Role::kUser},
    {"/kiln.v1.ProgramService/ListKernels", Role::kViewer},
    {"/kiln.v1.ProgramService/ListFirstCalls", Role::kViewer},
    {"/kiln.v1.ProgramService/TuneProgram", Role::kUser},
    {"/kiln.v1.ProgramService/ListTunings", Role::kViewer},
    {"/kiln.v1.ProgramService/StopTuning", Role::kUser},
    {"/kiln.v1.TraceService/Trace", Role::kViewer},
    {"/kiln.v1.AdminService/GetDaemon", Role::kViewer},
    {"/kiln.v1.AdminService/Drain", Role::kAdmin},
    {"/kiln.v1.AdminService/GetCache", Role::kViewer},
    {"/kiln.v1.AdminService/ClearCache", Role::kAdmin},
    {"/kiln.v1.AdminService/ExportSettings", Role::kAdmin},
    {"/kiln.v1.AdminService/ImportSettings", Role::kAdmin},
    {"/kiln.v1.AdminService/AddUser", Role::kAdmin},
    {"/kiln.v1.AdminService/RevokeUser", Role::kAdmin},
    {"/kiln.v1.AdminService/AddToken", Role::kAdmin},
    {"/kiln.v1.AdminService/RevokeToken", Role::kAdmin},
    {"/kiln.v1.AdminService/ListUsers", Role::kViewer},
    {"/kiln.v1.AdminService/SetQuota", Role::kAdmin},
    {"/kiln.v1.AdminService/ListQuotas", Role::kViewer},
    {"/kiln.v1.AdminService/ListAuditEvents", Role::kAdmin},
    {"/kiln.v1.AdminService/VerifyAuditLog", Role::kAdmin},
    {"/grpc.health.v1.Health/Check", Role::kViewer},
    {"/grpc.health.v1.Health/Watch", Role::kViewer},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kViewer},
};

}  // namespace

absl::Span<const MethodRule> MethodTable() { return kTable; }

std::optional<Role> LeastRole(absl::string_view method) {
  for (const MethodRule& rule : kTable)
    if (rule.method == method) return rule.role_min;
  return std::nullopt;
}

}  // namespace kiln::auth
