// kiln doctor
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_context.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "clients/cpp/status.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "kiln/v1/device.grpc.pb.h"

namespace kiln::cli {
namespace {

constexpr int kRoundTrips = 20;
// A certificate that expires sooner is a warning: time to make a new one.
constexpr absl::Duration kExpiresSoon = absl::Hours(24 * 30);

// The findings, printed as a table.
class Report {
 public:
  void Ok(std::string subject, std::string text) { Add("ok", std::move(subject), std::move(text)); }
  void Warn(std::string subject, std::string text) {
    Add("warn", std::move(subject), std::move(text));
  }
  void Fail(std::string subject, std::string text) {
    ++failures_;
    Add("FAIL", std::move(subject), std::move(text));
  }
  // Prints the table. The status is not OK if there is a failure; its message is empty because the
  // table says it.
  absl::Status Finish(std::ostream& out) const {
    table_.Print(out);
    return failures_ == 0 ? absl::OkStatus() : absl::FailedPreconditionError("");
  }

 private:
  void Add(std::string verdict, std::string subject, std::string text) {
    table_.Add({std::move(verdict), std::move(subject), std::move(text)});
  }

  Table table_{{"", "subject", "finding"}};
  int failures_ = 0;
};

// Returns why a call failed, as for other commands.
std::string Why(const grpc::Status& status, const client::Login& login) {
  return std::string(
      client::WithElsewhere(client::FromGrpc(status, login.address), login.elsewhere).message());
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

// Returns the certificate that a TLS server shows, whoever signed it; "" if there is none. Used to
// explain why gRPC has refused it, which it does not say.
std::string ShownCertificate(const std::string& host_and_port) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> settings(SSL_CTX_new(TLS_client_method()),
                                                                   &SSL_CTX_free);
  if (settings == nullptr) return "";
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> connection(
      BIO_new_ssl_connect(settings.get()), &BIO_free_all);
  if (connection == nullptr) return "";
  BIO_set_conn_hostname(connection.get(), host_and_port.c_str());
  SSL* tls = nullptr;
  BIO_get_ssl(connection.get(), &tls);
  if (tls == nullptr || BIO_do_handshake(connection.get()) != 1) return "";
  const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(tls),
                                                          &X509_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), &BIO_free);
  if (shown == nullptr || text == nullptr || PEM_write_bio_X509(text.get(), shown.get()) != 1)
    return "";
  char* data = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<size_t>(size)};
}

// Reports why no call is answered.
void CheckRefusal(const grpc::Status& status, const client::Login& login, Report& report) {
  if (absl::StrContains(status.error_message(), "certificate verify failed")) {
    const auto expiry = ExpiryOf(ShownCertificate(login.address));
    if (expiry && *expiry < absl::Now())
      return report.Fail(
          "certificate",
          absl::StrCat("that of ", login.address, " expired on ",
                       absl::FormatTime("%Y-%m-%d", *expiry, absl::UTCTimeZone()),
                       ". Ask the operator of its kilnd for a new one (--tls_certificate)"));
  }
  report.Fail("answer", Why(status, login));
}

void CheckCertificate(const grpc::ClientContext& context, Report& report) {
  const auto peer = context.auth_context();
  const auto pem =
      peer == nullptr ? std::vector<grpc::string_ref>() : peer->FindPropertyValues("x509_pem_cert");
  if (pem.empty()) return report.Ok("encryption", "none: the connection stays on this machine");
  const auto expiry = ExpiryOf(std::string(pem[0].data(), pem[0].size()));
  if (!expiry) return report.Warn("encryption", "TLS; the certificate has no readable expiry");
  const std::string until = absl::FormatTime("%Y-%m-%d", *expiry, absl::UTCTimeZone());
  if (*expiry - absl::Now() < kExpiresSoon)
    return report.Warn("encryption", absl::StrCat("TLS; the certificate expires on ", until,
                                                  ": ask the operator for a new one"));
  report.Ok("encryption", absl::StrCat("TLS; the certificate is valid until ", until));
}

// Returns "0.2" of "0.2.1".
std::string MinorOf(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  return parts.size() < 2 ? version : absl::StrCat(parts[0], ".", parts[1]);
}

void CheckVersion(const v1::GetDaemonResponse& daemon, Report& report) {
  const std::string text = absl::StrCat("kilnd ", daemon.version(), ", kiln ", ClientVersion());
  if (MinorOf(daemon.version()) == MinorOf(ClientVersion())) return report.Ok("version", text);
  report.Warn("version", absl::StrCat(text,
                                      ": clients work with daemons of other minor versions, "
                                      "but do not know what is new in them"));
}

// A call that reads nothing and computes nothing takes one round trip.
void CheckRoundTrip(v1::AdminService::Stub& stub, Report& report) {
  std::vector<double> seconds;
  for (int i = 0; i < kRoundTrips; ++i) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::GetDaemonResponse answer;
    const absl::Time began = absl::Now();
    if (!stub.GetDaemon(&context, {}, &answer).ok()) continue;
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - began));
  }
  if (seconds.empty()) return report.Fail("round trip", "no call was answered again");
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  report.Ok("round trip", absl::StrCat(Duration(seconds[seconds.size() / 2]), " (median of ",
                                       seconds.size(), ")"));
}

void CheckDevices(const v1::ListDevicesResponse& answer, Report& report) {
  if (answer.devices().empty())
    report.Fail("devices", "kilnd uses no device; its drivers say why, below");
  for (const v1::Device& device : answer.devices()) {
    const std::string text = absl::StrCat(device.model(), ", ", Health(device));
    if (device.health() == v1::Device::HEALTHY) {
      report.Ok(device.name(), text);
    } else if (device.health() == v1::Device::DRAINING) {
      report.Warn(device.name(), absl::StrCat(text,
                                              ": it takes no new sessions; `kiln drain "
                                              "--undo ",
                                              device.name(), "` puts it back into use"));
    } else {
      report.Fail(device.name(), text);
    }
  }
  for (const v1::Driver& driver : answer.drivers()) {
    if (driver.devices() == 0 && !driver.why_not_more().empty())
      report.Ok(absl::StrCat("driver ", driver.name()),
                absl::StrCat("not used: ", driver.why_not_more()));
  }
}

// Checks the daemon that answers at the login's address.
void CheckDaemon(const client::Login& login, const std::shared_ptr<grpc::Channel>& channel,
                 Report& report) {
  auto admin = v1::AdminService::NewStub(channel);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetDaemonResponse daemon;
  if (const grpc::Status status = admin->GetDaemon(&context, {}, &daemon); !status.ok()) {
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED)
      return report.Fail("login", Why(status, login));
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
      return report.Fail("answer", absl::StrCat("a process accepts connections at ", login.address,
                                                " but does not answer; look at the log of kilnd, "
                                                "and start it again if it hangs"));
    return CheckRefusal(status, login, report);
  }
  report.Ok("login", login.token.empty() && login.certificate.empty() ? "accepted without a token"
                                                                      : "accepted");
  CheckCertificate(context, report);
  CheckVersion(daemon, report);
  CheckRoundTrip(*admin, report);
  if (daemon.draining())
    report.Fail("draining",
                "kilnd is being stopped and takes no new sessions; wait for the next "
                "daemon, or start it");
  grpc::ClientContext list_context;
  SetDeadline(list_context);
  v1::ListDevicesResponse devices;
  auto stub = v1::DeviceService::NewStub(channel);
  const grpc::Status listed = stub->ListDevices(&list_context, {}, &devices);
  if (!listed.ok()) return report.Fail("devices", Why(listed, login));
  CheckDevices(devices, report);
}

// Says where the address comes from.
std::string SourceOf(const client::Login& given, const client::Login& login) {
  if (!given.address.empty()) return "from --address";
  if (login.is_found) return "the default";
  return client::ProcessSurroundings().environment("KILN_ADDRESS")
             ? "from $KILN_ADDRESS"
             : "from ~/.config/kiln/config.toml";
}

}  // namespace

absl::Status RunDoctor(Invocation& invocation) {
  if (absl::Status status = invocation.ExpectNoArguments(); !status.ok()) return status;
  if (invocation.json) return absl::InvalidArgumentError("there is no JSON of this command");
  Report report;
  const client::Surroundings surroundings = client::ProcessSurroundings();
  const auto login = client::FindLogin(invocation.given, surroundings);
  if (!login.ok()) {
    report.Fail("login", std::string(login.status().message()));
    return report.Finish(invocation.out);
  }
  report.Ok("address", absl::StrCat(login->address, ", ", SourceOf(invocation.given, *login)));
  grpc::ChannelArguments arguments;
  const auto channel = client::OpenChannel(*login, arguments, surroundings);
  if (channel.ok()) {
    CheckDaemon(*login, *channel, report);
  } else {
    report.Fail("login", std::string(channel.status().message()));
  }
  return report.Finish(invocation.out);
}

}  // namespace kiln::cli
