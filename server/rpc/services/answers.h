// The answers of calls that list and explain, for any caller that has been identified: the services
// send them over gRPC, and the web view (server/web) as JSON.
#ifndef KILN_SERVER_RPC_SERVICES_ANSWERS_H_
#define KILN_SERVER_RPC_SERVICES_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kiln/v1/admin.pb.h"
#include "kiln/v1/device.pb.h"
#include "kiln/v1/program.pb.h"
#include "server/auth/principal.h"
#include "server/rpc/services/services.h"
#include "server/tuner/device_rates.h"

namespace kiln::rpc {

void ListDevices(const DeviceServiceParts& parts, v1::ListDevicesResponse* response);
void ListUsers(const AdminServiceParts& parts, const auth::Principal& caller,
               v1::ListUsersResponse* response);
void ListPrograms(const ProgramServiceParts& parts, const auth::Principal& caller,
                  v1::ListProgramsResponse* response);
void ListFirstCalls(const ProgramServiceParts& parts, const auth::Principal& caller,
                    v1::ListFirstCallsResponse* response);

// Returns the programs that the caller may see: users see only those that they use
// (Principal::sees_all); the daemon's own are not included.
std::vector<std::shared_ptr<runtime::Program>> VisiblePrograms(const ProgramServiceParts& parts,
                                                               const auth::Principal& caller);

// A kernel of a program, with the times that the caller may see.
struct ListedKernel {
  std::shared_ptr<runtime::Program> program;
  size_t number = 0;  // index into compiled().kernels
  runtime::KernelTimes times;
  int64_t runs = 0;  // the caller's

  const compiler::CompiledKernel& compiled() const { return program->compiled().kernels[number]; }
};
std::vector<ListedKernel> KernelsOf(const std::shared_ptr<runtime::Program>& program,
                                    const auth::Principal& caller);
// Returns the kernels of one program, or of all programs that the caller may see if the digest (or
// its prefix) is empty. Errors of runtime::FindByPrefix.
absl::StatusOr<std::vector<ListedKernel>> ListKernels(const ProgramServiceParts& parts,
                                                      const auth::Principal& caller,
                                                      const std::string& digest);
// Sets what ListKernels of the API says of a kernel.
void FillKernel(const ListedKernel& kernel, bool sees_all, v1::Kernel* proto);

// Returns the roofline of each kernel; nothing is known before a tuning has measured its device.
std::vector<tuner::Roofline> RooflinesOf(const ProgramServiceParts& parts,
                                         absl::Span<const ListedKernel> kernels);
// Sets the same as FillKernel, and the roofline unless the measured time beats it.
void FillListedKernel(const ListedKernel& kernel, const tuner::Roofline& roofline, bool sees_all,
                      v1::Kernel* proto);

// Which texts of kernels an explanation has; they are generated each time.
struct KernelTexts {
  bool source = false;
  bool assembly = false;
};
// Sets everything about a program except its kernels.
void ExplainWithoutKernels(const ProgramServiceParts& parts, const auth::Principal& caller,
                           const std::shared_ptr<runtime::Program>& program,
                           v1::ExplainProgramResponse* response);
// Sets everything about a kernel. Errors of the compiler that generates a text.
absl::Status ExplainKernel(const ProgramServiceParts& parts, const auth::Principal& caller,
                           const ListedKernel& kernel, KernelTexts texts, v1::Kernel* proto);

// At most this many calls of a user that explain or list much are queued at a time
// (ProgramServiceParts::explanations).
inline constexpr size_t kExplanationsWaitingMax = 64;
absl::Status TooManyExplanations();

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_ANSWERS_H_
