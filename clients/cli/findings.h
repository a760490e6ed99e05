// Finds what is worth knowing about a daemon's answers: `kiln doctor` shows all findings, `kiln
// status` the problems.
#ifndef KILN_CLIENTS_CLI_FINDINGS_H_
#define KILN_CLIENTS_CLI_FINDINGS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/table.h"
#include "clients/cpp/address.h"
#include "kiln/v1/admin.pb.h"
#include "kiln/v1/device.pb.h"

namespace grpc {
class ClientContext;
}

namespace kiln::cli {

enum class Verdict { kOk, kWarning, kFailure };

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;
  std::string text;  // with what to do about a problem
};

// "ok", "warn" or "FAIL", in its colour.
Cell VerdictCell(Verdict verdict);

Finding VersionFinding(const v1::GetDaemonResponse& daemon);
// The daemon's certificate, as the connection of a call has shown it.
Finding CertificateFinding(const grpc::ClientContext& context, absl::Time now);
// Returns when a certificate expires; nullopt: the text is no readable PEM.
std::optional<absl::Time> ExpiryOf(const std::string& pem);
std::vector<Finding> DeviceFindings(const v1::ListDevicesResponse& answer);
// A daemon that takes no new work; nullopt: it does.
std::optional<Finding> DrainingFinding(const v1::GetDaemonResponse& daemon);
// A file with a token that others may read; nullopt: there is none.
std::optional<Finding> LoginFileFinding(const client::Surroundings& surroundings);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_FINDINGS_H_
