// No attacker can take the file descriptors that others need, with few and with many descriptors in
// the daemon: no stranger, no user, no other account of the machine.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/eventually.h"
#include "tests/server/attacks/hostile_fixture.h"
#include "tests/server/client.h"
#include "tests/server/raw_connection.h"
#include "tests/server/trainer.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

struct Machine {
  rlim_t files;  // that the daemon may have open
  int attempts;  // connections of the attacker
  int strangers_max;
  int user_max;
};

class DescriptorsTest : public HostileTest, public ::testing::WithParamInterface<Machine> {
 protected:
  void Prepare() override {
    const rlimit limit{GetParam().files, GetParam().files};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  std::string MoreConfiguration() const override { return "[auth]\nsystem_users = true\n"; }
  void SetUp() override {
    // The attacker's connections are in this process.
    rlimit own{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &own), 0);
    if (own.rlim_max < static_cast<rlim_t>(2 * GetParam().attempts))
      GTEST_SKIP() << "this process may not have so many connections";
    own.rlim_cur = own.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &own), 0);
    HostileTest::SetUp();
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    owner_ = std::make_unique<Client>(address_);
    ASSERT_TRUE(owner_->opened.ok()) << owner_->opened.error_message();
    mallory_ = AddUser(*owner_, "mallory");
    ann_ = AddUser(*owner_, "ann");
    // (The name of an account of the machine, such as prometheus, cannot be a user's name.)
    viewer_ = AddUser(*owner_, "scraper", "viewer");
    trainer_ = std::make_unique<Trainer>(address_);
    ASSERT_TRUE(trainer_->Advances(3));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    trainer_.reset();
    held_.clear();
    owner_.reset();
    HostileTest::TearDown();
  }
  // Called while the attacker holds as many as possible.
  void ExpectOthersAreServed() {
    EXPECT_TRUE(trainer_->Advances(3));
    const Client ann(absl::StrCat("127.0.0.1:", Port()), {.token = ann_});
    EXPECT_TRUE(ann.opened.ok()) << ann.opened.error_message();
    EXPECT_THAT(Metrics(viewer_), HasSubstr("kiln_"));
    v1::RevokeUserRequest request;
    request.set_name("mallory");
    const grpc::Status revoked = Try(owner_->admin, &v1::AdminService::Stub::RevokeUser, request);
    EXPECT_TRUE(revoked.ok()) << revoked.error_message();
  }
  bool KeepsAtMost(int connections_max) {
    return Eventually([&] {
      return std::count_if(held_.begin(), held_.end(), [](const auto& connection) {
               return connection->IsOpen();
             }) <= connections_max;
    });
  }

  std::unique_ptr<Client> owner_;
  std::string mallory_, ann_, viewer_;  // tokens
  std::unique_ptr<Trainer> trainer_;
  std::vector<std::unique_ptr<RawConnection>> held_;
};

TEST_P(DescriptorsTest, AStrangerLeavesEnough) {
  for (int i = 0; i < GetParam().attempts; ++i)
    held_.push_back(std::make_unique<RawConnection>(Port()));
  EXPECT_TRUE(KeepsAtMost(GetParam().strangers_max));
  ExpectOthersAreServed();
}

TEST_P(DescriptorsTest, AUserLeavesEnough) {
  const std::string call = Call(1, "/kiln.v1.DeviceService/ListDevices", "", mallory_);
  const int port = Port();
  for (int i = 0; i < GetParam().attempts; ++i) {
    held_.push_back(std::make_unique<RawConnection>(port));
    held_.back()->Send(call);
    ASSERT_TRUE(held_.back()->IsAnswered()) << i;
  }
  EXPECT_TRUE(KeepsAtMost(GetParam().user_max));
  ExpectOthersAreServed();
}

TEST_P(DescriptorsTest, AnotherAccountLeavesEnough) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another account";
  // Its connections are counted where they are held.
  const OtherAccount other([this] {
    for (int i = 0; i < GetParam().attempts; ++i)
      held_.push_back(std::make_unique<RawConnection>(address_.substr(5)));
    return KeepsAtMost(GetParam().strangers_max);
  });
  EXPECT_TRUE(other.Succeeds());
  ExpectOthersAreServed();
}

// Its connections bypass the limits for others, as it could stop the daemon anyway. A program of it
// that opens connections and forgets them must not do that.
TEST_P(DescriptorsTest, TheDaemonsOwnAccountLeavesEnough) {
  using Says = RawConnection::Says;
  for (int i = 0; i < GetParam().attempts; ++i)
    held_.push_back(std::make_unique<RawConnection>(
        address_.substr(5), i % 2 == 0 ? Says::kNothing : Says::kPreface));
  EXPECT_TRUE(KeepsAtMost(64));
  ExpectOthersAreServed();
  const Client same(address_);
  EXPECT_TRUE(same.opened.ok()) << same.opened.error_message();
}

INSTANTIATE_TEST_SUITE_P(Files, DescriptorsTest,
                         ::testing::Values(Machine{200, 230, 25, 25},
                                           Machine{65'536, 1'500, 256, 1'024}),
                         [](const auto& machine) { return absl::StrCat(machine.param.files); });

// Connections to the metrics' port whose requests never end.
class SlowScrapers {
 public:
  SlowScrapers(int port, int count, const std::string& request) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    for (int i = 0; i < count; ++i) {
      files_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(connect(files_.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
      // The daemon may have closed the connection already.
      send(files_.back(), request.data(), request.size(), MSG_NOSIGNAL);
    }
  }
  ~SlowScrapers() {
    for (const int file : files_) close(file);
  }
  SlowScrapers(const SlowScrapers&) = delete;
  SlowScrapers& operator=(const SlowScrapers&) = delete;

 private:
  std::vector<int> files_;
};

class SlowScrapersTest : public DescriptorsTest {
 protected:
  static constexpr int kConnections = 300;
  static constexpr char kBegin[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";

  int MetricsPort() { return NumberInLog("metrics_port="); }
};

TEST_P(SlowScrapersTest, OfAStrangerHoldUpNobody) {
  const SlowScrapers slow(MetricsPort(), kConnections, kBegin);
  ExpectOthersAreServed();
}

TEST_P(SlowScrapersTest, OfAUserHoldUpNobody) {
  const SlowScrapers slow(MetricsPort(), kConnections,
                          absl::StrCat(kBegin, "Authorization: Bearer ", mallory_, "\r\n"));
  ExpectOthersAreServed();
}

TEST_P(SlowScrapersTest, OfAnotherAccountHoldUpNobody) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another account";
  const int port = MetricsPort();
  std::unique_ptr<SlowScrapers> slow;
  const OtherAccount other([&] {
    slow = std::make_unique<SlowScrapers>(port, kConnections, kBegin);
    return true;
  });
  EXPECT_TRUE(other.Succeeds());
  ExpectOthersAreServed();
}

INSTANTIATE_TEST_SUITE_P(Files, SlowScrapersTest, ::testing::Values(Machine{65'536, 300, 0, 0}),
                         [](const auto& machine) { return absl::StrCat(machine.param.files); });

}  // namespace
}  // namespace kiln::testing
