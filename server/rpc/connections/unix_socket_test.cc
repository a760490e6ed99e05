#include "server/rpc/connections/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SocketClaimTest : public ::testing::Test {
 protected:
  SocketClaimTest() {
    std::string pattern = "/tmp/kiln_test_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/kilnd.sock";
  }
  ~SocketClaimTest() override { std::filesystem::remove_all(folder_); }

  // Returns a socket at the path that accepts no connection yet.
  int Bind() const {
    const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return file;
  }

  std::string folder_, path_;
};

TEST_F(SocketClaimTest, WhatAKilledDaemonHasLeftIsRemoved) {
  close(Bind());
  const auto claim = SocketClaim::Take(path_);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(absl::IsAlreadyExists(SocketClaim::Take(path_).status()));
}

// Its process does not have the lock: it is no kilnd, or the lock's file was deleted.
TEST_F(SocketClaimTest, ASocketThatAcceptsConnectionsIsNeverTakenOver) {
  const int file = Bind();
  ASSERT_EQ(listen(file, 0), 0);
  // The second attempt finds its queue full.
  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = SocketClaim::Take(path_).status();
    EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("accepts connections on unix:" + path_), HasSubstr("--listen")));
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
  close(file);
  EXPECT_TRUE(SocketClaim::Take(path_).ok());
}

TEST_F(SocketClaimTest, AnotherAccountsSocketIsNotRemoved) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a socket to another account";
  constexpr uid_t kNobody = 65534;
  close(Bind());
  ASSERT_EQ(chown(path_.c_str(), kNobody, kNobody), 0);
  const absl::Status refused = SocketClaim::Take(path_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr(path_ + " was left by a process of the account with the number 65534"),
            HasSubstr("remove it")));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketClaimTest, SomethingElseIsNeverRemoved) {
  std::ofstream(path_) << "a file";
  EXPECT_TRUE(absl::IsInvalidArgument(SocketClaim::Take(path_).status()));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace kiln::rpc
