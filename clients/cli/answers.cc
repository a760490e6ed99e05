// The JSON that commands print with --json, for --json_schema.
#include <google/protobuf/descriptor.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"
#include "clients/cli/json.h"
#include "clients/cli/status.h"
#include "kiln/v1/admin.pb.h"
#include "kiln/v1/device.pb.h"
#include "kiln/v1/program.pb.h"
#include "kiln/v1/session.pb.h"
#include "kiln/v1/trace.pb.h"

namespace kiln::cli {
namespace {

struct AnswerSchema {
  std::string_view words;  // the command, and a word after it if its answer is another
  std::string (*schema)();
  bool is_line = false;  // the command prints many, one a line
};

template <typename Answer>
std::string Of() {
  return InnerSchemaOf(*Answer::descriptor());
}

constexpr AnswerSchema kAnswers[] = {
    {"status", StatusSchema},
    {"devices", Of<v1::ListDevicesResponse>},
    {"sessions", Of<v1::ListSessionsResponse>},
    {"sessions close", Of<v1::EndSessionResponse>},
    {"programs", Of<v1::ListProgramsResponse>},
    {"kernels", Of<v1::ListKernelsResponse>},
    {"explain", Of<v1::ExplainProgramResponse>},
    {"cache", Of<v1::GetCacheResponse>},
    {"cache clear", Of<v1::ClearCacheResponse>},
    {"drain", Of<v1::DrainResponse>},
    {"top", Of<v1::ListUsersResponse>},
    {"trace", Of<v1::TraceResponse>, /*is_line=*/true},
    {"tune", Of<v1::TuneProgramResponse>, /*is_line=*/true},
    {"tune list", Of<v1::ListTuningsResponse>},
    {"tune stop", Of<v1::StopTuningResponse>},
    {"tune export", Of<v1::ExportSettingsResponse>},
    {"tune import", Of<v1::ImportSettingsResponse>},
    {"user add", Of<v1::AddUserResponse>},
    {"user list", Of<v1::ListUsersResponse>},
    {"user revoke", Of<v1::RevokeUserResponse>},
    {"user token add", Of<v1::AddTokenResponse>},
    {"user token list", Of<v1::User>},
    {"user token revoke", Of<v1::RevokeTokenResponse>},
    {"quota", Of<v1::ListQuotasResponse>},
    {"quota set", Of<v1::SetQuotaResponse>},
    {"audit", Of<v1::AuditEvent>, /*is_line=*/true},
    {"audit verify", Of<v1::VerifyAuditLogResponse>},
    {"version", Of<v1::GetDaemonResponse>},
};

}  // namespace

absl::StatusOr<std::string> JsonSchema(const std::vector<std::string>& words) {
  const AnswerSchema* found = nullptr;
  std::string begin;
  for (const std::string& word : words) {
    absl::StrAppend(&begin, begin.empty() ? "" : " ", word);
    for (const AnswerSchema& answer : kAnswers)
      if (answer.words == begin) found = &answer;
  }
  if (found != nullptr)
    return WholeSchema(absl::StrCat("kiln ", std::string(found->words), " --json",
                                    found->is_line ? ", each line" : ""),
                       found->schema());
  std::vector<std::string> with_json;
  for (const AnswerSchema& answer : kAnswers)
    if (!words.empty() && answer.words.substr(0, words[0].size()) == words[0])
      with_json.push_back(absl::StrCat("`kiln ", std::string(answer.words), "`"));
  if (with_json.empty()) return absl::InvalidArgumentError("there is no JSON of this command");
  return absl::InvalidArgumentError(absl::StrCat("name one of ", absl::StrJoin(with_json, ", ")));
}

}  // namespace kiln::cli
