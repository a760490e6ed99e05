#include "clients/cpp/socket_trust.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr unsigned kMe = 4001;
constexpr unsigned kService = 4002;
constexpr unsigned kStranger = 4003;

class SocketTrustTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root gives files to other accounts";
    std::string pattern = "/tmp/kiln_trust_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    chmod(folder_.c_str(), 0755);
  }
  ~SocketTrustTest() override { std::filesystem::remove_all(folder_); }

  void MakeFolder(const std::string& name, unsigned owner, mode_t mode) {
    mkdir(At(name).c_str(), mode);
    chmod(At(name).c_str(), mode);
    EXPECT_EQ(chown(At(name).c_str(), owner, owner), 0);
  }
  void MakeFile(const std::string& name, unsigned owner) {
    std::ofstream(At(name)) << "";
    EXPECT_EQ(chown(At(name).c_str(), owner, owner), 0);
  }
  void MakeLink(const std::string& name, unsigned owner, const std::string& target) {
    EXPECT_EQ(symlink(At(target).c_str(), At(name).c_str()), 0);
    EXPECT_EQ(lchown(At(name).c_str(), owner, owner), 0);
  }
  std::string At(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  std::string Why(const std::string& name) const { return WhyDistrusted(At(name), kMe); }

  std::string folder_;
};

TEST_F(SocketTrustTest, FoldersOfTrustedAccounts) {
  MakeFolder("mine", kMe, 0700);
  MakeFile("mine/s", kMe);
  EXPECT_THAT(Why("mine/s"), IsEmpty());
  MakeFolder("run", kService, 0755);  // root gave it to the service
  MakeFile("run/s", kService);
  EXPECT_THAT(Why("run/s"), IsEmpty());
  EXPECT_THAT(Why("nothing/at/all"), IsEmpty());
}

TEST_F(SocketTrustTest, FoldersOfEverybody) {
  MakeFolder("tmp", 0, 01777);
  MakeFolder("tmp/mine", kMe, 0700);
  MakeFile("tmp/mine/s", kMe);
  EXPECT_THAT(Why("tmp/mine/s"), IsEmpty());
  MakeFolder("tmp/hers", kStranger, 0777);
  MakeFile("tmp/hers/s", kMe);
  EXPECT_THAT(Why("tmp/hers/s"), HasSubstr("tmp/hers belongs to the account with the number 4003"));
  MakeFolder("open", kMe, 0770);
  MakeFile("open/s", kMe);
  EXPECT_THAT(Why("open/s"), HasSubstr("other accounts can replace files in"));
}

TEST_F(SocketTrustTest, LinksAreLookedAtThemselves) {
  MakeFolder("mine", kMe, 0700);
  MakeFile("mine/s", kMe);
  MakeFolder("tmp", 0, 01777);
  MakeLink("tmp/mine", kMe, "mine/s");
  EXPECT_THAT(Why("tmp/mine"), IsEmpty());
  // The owner can redirect the link after it was checked.
  MakeLink("tmp/hers", kStranger, "mine/s");
  EXPECT_THAT(Why("tmp/hers"), HasSubstr("number 4003"));
  MakeLink("mine/circle", kMe, "mine/circle");
  EXPECT_THAT(Why("mine/circle"), IsEmpty());
}

TEST_F(SocketTrustTest, TheErrorNamesTheSocketAndTheRemedy) {
  MakeFolder("tmp", 0, 01777);
  MakeFolder("tmp/hers", kStranger, 0755);
  MakeFile("tmp/hers/s", kStranger);
  const absl::Status refused = RequireTrusted(absl::StrCat("unix:", At("tmp/hers/s")), kMe);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tmp/hers/s may be another account's"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("KILN_ADDRESS"));
  EXPECT_TRUE(RequireTrusted("127.0.0.1:7433", kMe).ok());
}

}  // namespace
}  // namespace kiln::client
