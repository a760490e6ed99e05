// A crowd at one daemon: clients of several users that compute, lose their connections, vanish, ask
// for more than there is or than their quotas allow, cancel, send nonsense and look for what is
// others', while processes of other clients are killed. Each knows what every answer
// must be (exact_client.h), and when all have gone the daemon holds nothing of them.
//
//   KILN_CROWD_SECONDS=600 KILN_CROWD_CLIENTS=32 KILN_SEED=7 kilnd_test
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/environment.h"
#include "tests/server/crowd_guest.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMebibyte = 1 << 20;

// Processes of clients, killed at random moments, in a thread of its own. Their sessions are the
// owner's.
class Killer {
 public:
  Killer(std::string address, uint64_t seed)
      : address_(std::move(address)), random_(seed), thread_([this] { Run(); }) {}
  ~Killer() { Stop(); }
  // Returns how many it has killed.
  int Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return kills_;
  }

 private:
  void Run() {
    do {
      std::string program = KILND_TEST_CLIENT;
      char* arguments[] = {program.data(), address_.data(), nullptr};
      pid_t client = 0;
      if (posix_spawn(&client, KILND_TEST_CLIENT, nullptr, nullptr, arguments, environ) != 0)
        return;
      absl::SleepFor(absl::Milliseconds(random_() % 1000));
      kill(client, SIGKILL);
      int status = 0;
      waitpid(client, &status, 0);
      if (WIFSIGNALED(status)) ++kills_;  // one that has ended by itself was not killed
    } while (!stopping_);
  }

  std::string address_;
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
      const std::string name = absl::StrCat("user", i);
      tokens_.push_back(AddUser(*owner_, name));
      v1::SetQuotaRequest quota;
      quota.set_user(name);
      (*quota.mutable_limits())["graph_nodes"] = Crowd::kGraphNodes;
      (*quota.mutable_limits())["device_memory"] = Crowd::kDeviceBytes;
      ASSERT_TRUE(Try(owner_->admin, &v1::AdminService::Stub::SetQuota, quota).ok());
    }
  }
  // So many guests for so long; then all are gone.
  void Visit(int64_t guests, absl::Duration duration, uint64_t seed) {
    Ids ids;
    std::vector<std::unique_ptr<Guest>> all;
    std::vector<std::thread> threads;
    const absl::Time until = absl::Now() + duration;
    Killer killer(address_, seed);
    for (int i = 0; i < guests; ++i) {
      all.push_back(std::make_unique<Guest>(address_, i % Crowd::kUsers,
                                            tokens_[static_cast<size_t>(i % Crowd::kUsers)],
                                            seed + static_cast<uint64_t>(i), ids));
      threads.emplace_back([guest = all.back().get(), until] { guest->Stay(until); });
    }
    for (std::thread& thread : threads) thread.join();
    const int kills = killer.Stop();
    EXPECT_GT(kills, 0);
    int64_t operations = 0;
    for (const auto& guest : all) {
      EXPECT_EQ(guest->wrong(), "") << "KILN_SEED=" << seed;
      operations += guest->operations();
    }
    EXPECT_GE(operations, Crowd::kLeastOperations * guests);
    EXPECT_TRUE(IsEmpty()) << "sessions or memory are left";
    std::printf("%ld operations, %d clients killed; resident: %ld MiB\n",
                static_cast<long>(operations), kills, static_cast<long>(Resident() / kMebibyte));
  }
  // Once the leases of those who vanished have run out.
  bool IsEmpty() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10 * Crowd::kLeaseSeconds);
    while (absl::Now() < deadline) {
      grpc::ClientContext sessions_context, users_context;
      v1::ListSessionsResponse sessions;
      v1::ListUsersResponse users;
      owner_->sessions->ListSessions(&sessions_context, {}, &sessions);
      owner_->admin->ListUsers(&users_context, {}, &users);
      uint64_t bytes = 0;
      for (const v1::User& user : users.users()) bytes += user.memory_bytes();
      if (sessions.sessions_size() == 1 && bytes == 0) return true;
      absl::SleepFor(absl::Milliseconds(50));
    }
    return false;
  }
  int64_t Resident() const {
    std::ifstream file(absl::StrCat("/proc/", pid_, "/statm"));
    int64_t pages = 0;
    file >> pages >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  }

  std::unique_ptr<Client> owner_;  // whose session is the only one that stays
  std::vector<std::string> tokens_;
};

TEST_F(CrowdTest, EachIsServedExactlyAndNothingIsLeft) {
  const int64_t guests = NumberFromEnvironment("KILN_CROWD_CLIENTS", 32);
  const absl::Duration duration = absl::Seconds(NumberFromEnvironment("KILN_CROWD_SECONDS", 4));
  const auto seed = static_cast<uint64_t>(NumberFromEnvironment("KILN_SEED", 1));
  Start();
  AddUsers();
  // Caches, threads and pools are there after the first.
  Visit(guests, std::min(duration, absl::Seconds(30)), seed + 1000);
  const int64_t before = Resident();
  Visit(guests, duration, seed);
  if (kMemoryIsOurs) {
    EXPECT_LT(Resident(), before + 48 * kMebibyte);
  }
  const int status = End(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << Log();
  EXPECT_THAT(Log(), Not(HasSubstr("Sanitizer"))) << Log();
}

}  // namespace
}  // namespace kiln::testing
