#include "clients/cli/findings.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_context.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cpp/login.h"

namespace kiln::cli {
namespace {

// A certificate that expires sooner is a warning: time to make a new one.
constexpr absl::Duration kExpiresSoon = absl::Hours(24 * 30);
// A device with less free memory soon refuses tensors.
constexpr double kFullShare = 0.95;

// Returns "0.2" of "0.2.1".
std::string MinorOf(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  return parts.size() < 2 ? version : absl::StrCat(parts[0], ".", parts[1]);
}

Finding OfDevice(const v1::Device& device) {
  const std::string text = absl::StrCat(device.model(), ", ", Health(device));
  switch (device.health()) {
    case v1::Device::HEALTHY:
      break;
    case v1::Device::DRAINING:
      return {Verdict::kWarning, device.name(),
              absl::StrCat(text, ": it takes no new sessions; `kiln drain --undo ", device.name(),
                           "` puts it back into use")};
    default:
      return {Verdict::kFailure, device.name(),
              absl::StrCat(text,
                           ". It is not used; the log of kilnd says more (device_failed), and "
                           "kilnd tries to revive it")};
  }
  const auto total = static_cast<double>(device.memory_total_bytes());
  if (total > 0 && static_cast<double>(device.memory_used_bytes()) > kFullShare * total) {
    return {
        Verdict::kWarning, device.name(),
        absl::StrCat(Bytes(device.memory_used_bytes()), " of ", Bytes(device.memory_total_bytes()),
                     " are used; `kiln sessions --sort memory` shows by whom")};
  }
  return {Verdict::kOk, device.name(), text};
}

}  // namespace

Cell VerdictCell(Verdict verdict) {
  if (verdict == Verdict::kOk) return Cell("ok", Color::kGood);
  return verdict == Verdict::kWarning ? Cell("warn", Color::kWarning) : Cell("FAIL", Color::kBad);
}

std::optional<absl::Time> ExpiryOf(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), &X509_free);
  std::tm time = {};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &time) != 1)
    return std::nullopt;
  return absl::FromTM(time, absl::UTCTimeZone());
}

Finding CertificateFinding(const grpc::ClientContext& context, absl::Time now) {
  const std::string subject = "encryption";
  const auto peer = context.auth_context();
  const auto pem =
      peer == nullptr ? std::vector<grpc::string_ref>() : peer->FindPropertyValues("x509_pem_cert");
  if (pem.empty()) return {Verdict::kOk, subject, "none: the connection stays on this machine"};
  const auto expiry = ExpiryOf(std::string(pem[0].data(), pem[0].size()));
  if (!expiry) return {Verdict::kWarning, subject, "TLS; the certificate has no readable expiry"};
  const std::string until = absl::FormatTime("%Y-%m-%d", *expiry, absl::UTCTimeZone());
  if (*expiry - now < kExpiresSoon)
    return {Verdict::kWarning, subject,
            absl::StrCat("TLS; the certificate expires on ", until,
                         ": ask the operator for a new one")};
  return {Verdict::kOk, subject, absl::StrCat("TLS; the certificate is valid until ", until)};
}

Finding VersionFinding(const v1::GetDaemonResponse& daemon) {
  const std::string text = absl::StrCat("kilnd ", daemon.version(), ", kiln ", ClientVersion());
  if (MinorOf(daemon.version()) == MinorOf(ClientVersion())) return {Verdict::kOk, "version", text};
  return {Verdict::kWarning, "version",
          absl::StrCat(text,
                       ": clients work with daemons of other minor versions, but do not know "
                       "what is new in them")};
}

std::vector<Finding> DeviceFindings(const v1::ListDevicesResponse& answer) {
  std::vector<Finding> findings;
  if (answer.devices().empty())
    findings.push_back({Verdict::kFailure, "devices",
                        "kilnd uses no device; `kiln devices` shows why its drivers have none"});
  for (const v1::Device& device : answer.devices()) findings.push_back(OfDevice(device));
  for (const v1::Driver& driver : answer.drivers()) {
    if (driver.devices() == 0 && !driver.why_not_more().empty())
      findings.push_back({Verdict::kOk, absl::StrCat("driver ", driver.name()),
                          absl::StrCat("not used: ", driver.why_not_more())});
  }
  return findings;
}

std::optional<Finding> DrainingFinding(const v1::GetDaemonResponse& daemon) {
  if (!daemon.draining()) return std::nullopt;
  return Finding{Verdict::kFailure, "draining",
                 "kilnd takes no new sessions: it is being stopped, or all devices are drained or "
                 "have failed; wait for the next daemon, or start it"};
}

std::optional<Finding> LoginFileFinding(const client::Surroundings& surroundings) {
  const std::string path = client::LoginFile(surroundings);
  struct stat found {};
  if (path.empty() || stat(path.c_str(), &found) != 0 || (found.st_mode & 077) == 0)
    return std::nullopt;
  const auto login = client::ReadLoginFile(surroundings);
  if (!login.ok() || login->token.empty()) return std::nullopt;
  return Finding{Verdict::kWarning, "token",
                 absl::StrFormat("%s has a token, and its mode %04o lets others read it; run chmod "
                                 "600 %s",
                                 path, found.st_mode & 07777, path)};
}

}  // namespace kiln::cli
