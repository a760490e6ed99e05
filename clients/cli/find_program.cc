#include "clients/cli/find_program.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/format.h"
#include "kiln/v1/program.grpc.pb.h"

namespace kiln::cli {
namespace {

constexpr int kShownMax = 8;

absl::Status NoSuchProgram(const v1::ListProgramsResponse& programs, const std::string& wanted) {
  if (programs.programs().empty()) {
    return absl::NotFoundError(
        absl::StrCat("the daemon has no compiled programs, so there is no ", wanted));
  }
  std::string known;
  for (int i = 0; i < std::min(programs.programs_size(), kShownMax); ++i) {
    const v1::Program& program = programs.programs(i);
    absl::StrAppend(&known, i == 0 ? "" : ", ", ShortDigest(program.digest()), " (", program.name(),
                    ")");
  }
  const int more = programs.programs_size() - kShownMax;
  if (more > 0) absl::StrAppend(&known, " and ", more, " more; see `kiln programs`");
  return absl::NotFoundError(
      absl::StrCat("there is no program ", wanted, "; the daemon has ", known));
}

}  // namespace

absl::StatusOr<v1::ListProgramsResponse> ListPrograms(const Invocation& invocation) {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListProgramsResponse answer;
  auto stub = v1::ProgramService::NewStub(invocation.channel);
  if (absl::Status status = invocation.Check(stub->ListPrograms(&context, {}, &answer));
      !status.ok())
    return status;
  return answer;
}

absl::StatusOr<std::string> FindProgram(const v1::ListProgramsResponse& programs,
                                        const std::string& wanted) {
  const v1::Program* by_digest = nullptr;
  const v1::Program* by_name = nullptr;
  for (const v1::Program& program : programs.programs()) {
    if (absl::StartsWith(program.digest(), wanted)) {
      // One digest may be listed several times, once for each device.
      if (by_digest != nullptr && by_digest->digest() != program.digest()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "several programs have a digest that begins with ", wanted, "; use more digits"));
      }
      by_digest = &program;
    }
    // Takes the newest of several programs with the same name.
    if (program.name() == wanted &&
        (by_name == nullptr || program.compiled().seconds() >= by_name->compiled().seconds())) {
      by_name = &program;
    }
  }
  // A digest has precedence: clients choose the names, which may look like one.
  if (by_digest != nullptr) return by_digest->digest();
  if (by_name != nullptr) return by_name->digest();
  return NoSuchProgram(programs, wanted);
}

}  // namespace kiln::cli
