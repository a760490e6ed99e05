// kiln doctor
#include <grpcpp/grpcpp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/findings.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"
#include "clients/cpp/status.h"
#include "kiln/v1/admin.grpc.pb.h"
#include "kiln/v1/device.grpc.pb.h"

namespace kiln::cli {
namespace {

constexpr int kRoundTrips = 20;
// A server that accepts a connection and says nothing must not keep the doctor waiting.
constexpr absl::Duration kHandshakeMax = absl::Seconds(5);

// The findings, printed as a table.
class Report {
 public:
  void Add(const Finding& finding) {
    if (finding.verdict == Verdict::kFailure) ++failures_;
    table_.Add({VerdictCell(finding.verdict), finding.subject, finding.text});
  }
  void Ok(std::string subject, std::string text) {
    Add({Verdict::kOk, std::move(subject), std::move(text)});
  }
  void Fail(std::string subject, std::string text) {
    Add({Verdict::kFailure, std::move(subject), std::move(text)});
  }
  // Prints the table. The status is not OK if there is a failure; its message is empty because the
  // table says it.
  absl::Status Finish(std::ostream& out) const {
    table_.Print(out);
    return failures_ == 0 ? absl::OkStatus() : absl::FailedPreconditionError("");
  }

 private:
  Table table_{{"", "subject", "finding"}};
  int failures_ = 0;
};

// Returns why a call failed, as for other commands.
std::string Why(const grpc::Status& status, const client::Login& login) {
  return std::string(
      client::WithElsewhere(client::FromGrpc(status, login.address), login).message());
}

// Completes the handshake; false if it fails or takes too long.
bool Handshake(BIO* connection) {
  const absl::Time deadline = absl::Now() + kHandshakeMax;
  while (BIO_do_handshake(connection) != 1) {
    const absl::Duration left = deadline - absl::Now();
    pollfd descriptor{.fd = -1, .events = POLLIN, .revents = 0};
    if (!BIO_should_retry(connection) || left <= absl::ZeroDuration() ||
        BIO_get_fd(connection, &descriptor.fd) < 0)
      return false;
    // Connecting is a write, too.
    if (!BIO_should_read(connection)) descriptor.events = POLLOUT;
    poll(&descriptor, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
  return true;
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
  BIO_set_nbio(connection.get(), 1);
  SSL* tls = nullptr;
  BIO_get_ssl(connection.get(), &tls);
  if (tls == nullptr || !Handshake(connection.get())) return "";
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
  report.Add(CertificateFinding(context, absl::Now()));
  report.Add(VersionFinding(daemon));
  CheckRoundTrip(*admin, report);
  if (const auto draining = DrainingFinding(daemon)) report.Add(*draining);
  grpc::ClientContext list_context;
  SetDeadline(list_context);
  v1::ListDevicesResponse devices;
  auto stub = v1::DeviceService::NewStub(channel);
  const grpc::Status listed = stub->ListDevices(&list_context, {}, &devices);
  if (!listed.ok()) return report.Fail("devices", Why(listed, login));
  for (const Finding& finding : DeviceFindings(devices)) report.Add(finding);
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
  if (!login->skipped.empty()) report.Add({Verdict::kWarning, "socket", login->skipped});
  if (const auto readable = LoginFileFinding(surroundings)) report.Add(*readable);
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
