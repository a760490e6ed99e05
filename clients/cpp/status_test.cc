#include "clients/cpp/status.h"

#include <grpcpp/support/status.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Told(const std::string& message) {
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, message), "box:7433");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  EXPECT_TRUE(IsLostConnection(status));
  return std::string(status.message());
}

// The messages of gRPC 1.51 and newer versions.
TEST(FromGrpc, TellsMistakesWithTlsApart) {
  constexpr char kFailed[] = "failed to connect to all addresses; last error: UNKNOWN: ipv4:1: ";
  const std::pair<const char*, const char*> cases[] = {
      {"Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify "
       "failed",
       "not signed by the authority in $KILN_CA"},
      {"Tls handshake failed: OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: self signed certificate",
       "not signed by the authority in $KILN_CA"},
      {"OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired",
       "has an expired certificate"},
      {"Peer name box is not in peer certificate", "for other names"},
      {"UNAUTHENTICATED: Hostname Verification Check failed.", "for other names"},
      {"SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number",
       "box:7433 does not use TLS"},
      {"Socket closed", "closed the connection at once. If its kilnd uses TLS"},
      {"recvmsg:Connection reset by peer (104)",
       "closed the connection at once. If its kilnd uses TLS"},
      {"Unwrap failed (TSI_DATA_CORRUPTED)", "check that kilnd accepts its authority"}};
  for (const auto& [said, wanted] : cases) {
    EXPECT_THAT(Told(absl::StrCat(kFailed, said)),
                AllOf(HasSubstr(wanted), HasSubstr("box:7433"), Not(HasSubstr("Start one"))));
  }
  EXPECT_THAT(Told(absl::StrCat(kFailed, "Connection refused")),
              HasSubstr("no kilnd answers at box:7433"));
}

TEST(FromGrpc, ADaemonThatDoesNotAnswerIsNamedWithTheRemedy) {
  const absl::Status late = FromGrpc(
      grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"), "unix:/kilnd.sock");
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()),
              AllOf(HasSubstr("the daemon at unix:/kilnd.sock has not answered in time"),
                    HasSubstr("too many connections"), HasSubstr("restart it")));
}

TEST(FromGrpc, AConnectionThatWasLostIsNoMistake) {
  EXPECT_THAT(Told("Socket closed"), HasSubstr("no kilnd answers at box:7433"));
}

}  // namespace
}  // namespace kiln::client
