#include "server/rpc/connections/credentials.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::rpc {
namespace {

using ::testing::HasSubstr;

TEST(Credentials, OnlyThisMachineIsLoopback) {
  for (const char* address : {"127.0.0.1:7433", "127.8.9.10:0", "localhost:1", "[::1]:7433"})
    EXPECT_TRUE(IsLoopback(address)) << address;
  for (const char* address :
       {"0.0.0.0:7433", "[::]:7433", "box:1", "10.0.0.1:1", "127.0.0.1.example.org:1",
        "127.example.org:1", "localhost.x:1", "128.0.0.1:1", ":7433", "*:7433"})
    EXPECT_FALSE(IsLoopback(address)) << address;
}

TEST(Credentials, TheDaemonListensBeyondLoopbackWithTlsAlone) {
  EXPECT_TRUE(CheckListening({"unix:/x", "127.0.0.1:1"}, {}, true).ok());
  const absl::Status open = CheckListening({"unix:/x", "0.0.0.0:1"}, {}, false);
  EXPECT_EQ(open.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(open.message()), HasSubstr("0.0.0.0:1 can be reached"));
}

TEST(Credentials, MetricsAreForOthersOnlyWithAPassword) {
  EXPECT_TRUE(CheckMetricsListening("127.0.0.1:7434", {.is_open = true, .is_plain = true}).ok());
  EXPECT_TRUE(CheckMetricsListening("0.0.0.0:7434", {}).ok());
  EXPECT_THAT(std::string(CheckMetricsListening("0.0.0.0:7434", {.is_plain = true}).message()),
              HasSubstr("plain_http is only for this machine"));
  EXPECT_THAT(std::string(CheckMetricsListening("0.0.0.0:7434", {.is_open = true}).message()),
              HasSubstr("0.0.0.0:7434 can be reached"));
}

TEST(Credentials, FilesOfTlsMustBeThere) {
  const std::pair<relay::TlsFiles, const char*> cases[] = {
      {{"/nowhere.pem", "/nowhere.key", ""},
       "tls.certificate: cannot read the file /nowhere.pem: it does not exist"},
      {{"/dev/zero", "/nowhere.key", ""},
       "tls.certificate: cannot read the file /dev/zero: it is a device"},
      {{"/dev", "/nowhere.key", ""}, "tls.certificate: cannot read the file /dev: it is a folder"},
      {{"/nowhere.pem", "", ""}, "certificate and key together"},
      {{"", "/nowhere.key", ""}, "certificate and key together"},
      {{"", "", "/nowhere.pem"}, "needs a certificate"}};
  for (const auto& [files, message] : cases) {
    EXPECT_THAT(std::string(CheckListening({"127.0.0.1:1"}, files, false).message()),
                HasSubstr(message));
  }
}

}  // namespace
}  // namespace kiln::rpc
