// Many clients of several users of one daemon compute, lose their connections, disappear, exceed
// its limits or their quotas, cancel, send invalid data and try other users' ids, while processes
// of other clients are killed. Each client knows what every answer must be
// (tests/server/exact_client.h). When all have gone, the daemon holds nothing of theirs.
//
//   KILN_CROWD_OPERATIONS=100000 KILN_CROWD_CLIENTS=32 KILN_SEED=7 kilnd_test
//   --gtest_filter=*Crowd*
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/environment.h"
#include "tests/eventually.h"
#include "tests/server/kilnd_process.h"
#include "tests/server/processes/crowd_guest.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Starts processes of clients and kills them, in its own thread: each after a random number of
// calls that the daemon has answered. Their sessions belong to the owner.
class Killer {
 public:
  Killer(std::string address, uint64_t seed)
      : address_(std::move(address)),
        channel_(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials())),
        random_(seed),
        thread_([this] { Run(); }) {}
  ~Killer() { Stop(); }
  // Returns how many it has killed.
  int Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return kills_;
  }

 private:
  // The owner's sessions hold memory until their leases end, and the guests need some of it.
  static constexpr int kSessionsMax = 4;

  void Run() {
    do {
      if (!Eventually([this] { return stopping_ || CountSessions() <= kSessionsMax; })) return;
      std::string program = KILND_TEST_CLIENT;
      char* arguments[] = {program.data(), address_.data(), nullptr};
      pid_t client = 0;
      if (posix_spawn(&client, KILND_TEST_CLIENT, nullptr, nullptr, arguments, environ) != 0)
        return;
      for (uint64_t calls = random_() % 40; calls > 0; --calls) CountSessions();
      kill(client, SIGKILL);
      int status = 0;
      waitpid(client, &status, 0);
      if (WIFSIGNALED(status)) ++kills_;  // a client that has exited by itself was not killed
    } while (!stopping_);
  }

  // Returns how many sessions the owner has.
  int CountSessions() {
    grpc::ClientContext context;
    v1::ListSessionsResponse all;
    v1::SessionService::NewStub(channel_)->ListSessions(&context, {}, &all);
    return static_cast<int>(absl::c_count_if(all.sessions(), [](const v1::Session& session) {
      return !absl::StartsWith(session.user(), Crowd::kUserPrefix);
    }));
  }

  std::string address_;
  const std::shared_ptr<grpc::Channel> channel_;
  Random random_;
  std::atomic<bool> stopping_{false};
  int kills_ = 0;
  std::thread thread_;
};

class CrowdTest : public ProcessTest {
 protected:
  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = ProcessTest::Flags();
    flags.push_back(absl::StrCat("--host_memory_limit=", Crowd::kHostBytes));
    flags.push_back(absl::StrCat("--memory_limit=", Crowd::kHostBytes));
    flags.push_back("--cpu_threads=1");
    return flags;
  }
  void AddUsers() {
    owner_ = std::make_unique<Client>(address_);
    for (int i = 0; i < Crowd::kUsers; ++i) {
      const std::string name = absl::StrCat(Crowd::kUserPrefix, i);
      tokens_.push_back(AddUser(*owner_, name));
      v1::SetQuotaRequest quota;
      quota.set_user(name);
      (*quota.mutable_limits())["graph_nodes"] = Crowd::kGraphNodes;
      (*quota.mutable_limits())["device_memory"] = Crowd::kDeviceBytes;
      ASSERT_TRUE(Try(owner_->admin, &v1::AdminService::Stub::SetQuota, quota).ok());
    }
  }
  // Runs `guests` guests with `operations` operations each, and waits until the daemon holds
  // nothing of theirs.
  void Visit(int64_t guests, int64_t operations, uint64_t seed) {
    Ids ids;
    std::vector<std::unique_ptr<Guest>> all;
    std::vector<std::thread> threads;
    Killer killer(address_, seed);
    for (int i = 0; i < guests; ++i) {
      all.push_back(std::make_unique<Guest>(address_, i % Crowd::kUsers,
                                            tokens_[static_cast<size_t>(i % Crowd::kUsers)],
                                            seed + static_cast<uint64_t>(i), ids));
      threads.emplace_back([guest = all.back().get(), operations] { guest->Stay(operations); });
    }
    for (std::thread& thread : threads) thread.join();
    const int kills = killer.Stop();
    EXPECT_GT(kills, 0);
    for (const auto& guest : all) {
      EXPECT_EQ(guest->wrong(), "") << "KILN_SEED=" << seed;
      EXPECT_GE(guest->operations(), operations);
    }
    EXPECT_TRUE(IsEmpty()) << "sessions or memory are left";
    std::printf("%ld operations, %d clients killed; resident: %ld MiB\n",
                static_cast<long>(guests * operations), kills,
                static_cast<long>(Resident() / kMebibyte));
  }
  // Waits until the leases of clients that disappeared have run out.
  bool IsEmpty() {
    return Eventually([this] {
      grpc::ClientContext sessions_context, users_context;
      v1::ListSessionsResponse sessions;
      v1::ListUsersResponse users;
      owner_->sessions->ListSessions(&sessions_context, {}, &sessions);
      owner_->admin->ListUsers(&users_context, {}, &users);
      uint64_t bytes = 0;
      for (const v1::User& user : users.users()) bytes += user.memory_bytes();
      return sessions.sessions_size() == 1 && bytes == 0;
    });
  }

  std::unique_ptr<Client> owner_;  // its session is the only one that stays
  std::vector<std::string> tokens_;
};

TEST_F(CrowdTest, EachIsServedExactlyAndNothingIsLeft) {
  const int64_t guests = NumberFromEnvironment("KILN_CROWD_CLIENTS", 32);
  // A sanitizer is slow.
  const int64_t operations =
      NumberFromEnvironment("KILN_CROWD_OPERATIONS", kMemoryIsOurs ? 1000 : 200);
  const auto seed = static_cast<uint64_t>(NumberFromEnvironment("KILN_SEED", 1));
  Start();
  AddUsers();
  // Caches, threads and pools exist after the first visit.
  Visit(guests, std::min(operations, int64_t{10'000}), seed + 1000);
  const int64_t before = Resident();
  Visit(guests, operations, seed);
  if (kMemoryIsOurs) {
    EXPECT_LT(Resident(), before + 48 * kMebibyte);
  }
  const int status = End(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << Log();
  EXPECT_THAT(Log(), Not(HasSubstr("Sanitizer"))) << Log();
}

}  // namespace
}  // namespace kiln::testing
