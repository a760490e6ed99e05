#include "server/auth/authenticator.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/auth/token.h"
#include "server/errors/errors.h"
#include "tests/eventually.h"

namespace kiln::auth {
namespace {

class AuthenticatorTest : public ::testing::Test {
 protected:
  // Counts verifications, and compares instead of hashing.
  Authenticator::Options Options() {
    return {.store = store_.get(),
            .key = *cache::Secret::Open(folder_ + "/key"),
            .now = [this] { return now_; },
            .is_account = [](const std::string& name, Role) { return name == "games"; },
            .hash = [](const std::string& secret) { return "hash_of_" + secret; },
            .verify =
                [this](const std::string& hash, const std::string& secret) {
                  ++verified_;
                  return hash == "hash_of_" + secret;
                }};
  }

  static std::string MakeFolder() {
    std::string pattern = ::testing::TempDir() + "kiln_auth_XXXXXX";
    return mkdtemp(pattern.data());
  }
  const std::string folder_ = MakeFolder();
  std::unique_ptr<UserStore> store_ = *UserStore::Open(folder_ + "/users");
  std::atomic<int> verified_{0};
  absl::Time now_ = absl::FromUnixSeconds(1);
};

TEST_F(AuthenticatorTest, KnowsATokenUntilItIsRevoked) {
  Authenticator users(Options());
  EXPECT_TRUE(users.nobody_known());
  const auto token = users.AddUser("ann", Role::kUser);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_FALSE(users.nobody_known());
  for (int i = 0; i < 3; ++i) {
    const auto ann = users.ByToken(*token);
    ASSERT_TRUE(ann.ok()) << ann.status();
    EXPECT_EQ(ann->user, "ann");
    EXPECT_EQ(ann->role, Role::kUser);
    EXPECT_EQ(ann->how, "token");
  }
  EXPECT_EQ(verified_, 1);
  ASSERT_TRUE(users.RevokeUser("ann").ok());
  EXPECT_EQ(users.ByToken(*token).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(users.nobody_known());
  const auto second = users.AddUser("ann", Role::kAdmin);
  EXPECT_FALSE(users.ByToken(*token).ok());
  EXPECT_EQ(users.ByToken(*second)->role, Role::kAdmin);
}

TEST_F(AuthenticatorTest, MadeUpTokensCostNothingAndAreAllToldTheSame) {
  Authenticator users(Options());
  const std::string token = *users.AddUser("ann", Role::kUser);
  const std::string revoked = *users.AddUser("bob", Role::kUser);
  ASSERT_TRUE(users.RevokeUser("bob").ok());
  std::string wrong = token;
  wrong[40] = wrong[40] == 'a' ? 'b' : 'a';
  std::string other_id = token;
  other_id[7] = other_id[7] == 'a' ? 'b' : 'a';
  const std::string foreign =
      Text(MakeToken(*cache::Secret::Open(folder_ + "/another_daemons_key")));
  const auto message = users.ByToken("").status();
  for (const std::string& bad : {revoked, wrong, other_id, foreign, token + "0", token.substr(1),
                                 std::string(100'000, 'x'), std::string("kiln__")}) {
    EXPECT_EQ(users.ByToken(bad).status(), message) << bad.substr(0, 100);
  }
  EXPECT_EQ(verified_, 0);
}

TEST_F(AuthenticatorTest, FewVerificationsGoOnAtOnce) {
  std::atomic<int> running{0};
  std::atomic<int> highest{0};
  absl::Notification go;
  Authenticator::Options options = Options();
  options.verify = [&](const std::string&, const std::string&) {
    const int now = ++running;
    int seen = highest.load();
    while (now > seen && !highest.compare_exchange_weak(seen, now)) {
    }
    go.WaitForNotification();
    --running;
    return true;
  };
  Authenticator users(std::move(options));
  std::vector<std::string> tokens;
  for (int i = 0; i < 8; ++i)
    tokens.push_back(*users.AddUser(absl::StrCat("user", i), Role::kUser));
  std::vector<std::thread> threads;
  for (const std::string& token : tokens)
    threads.emplace_back([&users, &token] { EXPECT_TRUE(users.ByToken(token).ok()); });
  EXPECT_TRUE(kiln::testing::Eventually([&] { return running >= 2; }));
  go.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(highest, 2);
}

TEST_F(AuthenticatorTest, HashesWithArgon2id) {
  const std::string hash = *HashSecret("secret");
  EXPECT_EQ(hash.substr(0, 10), "$argon2id$");
  EXPECT_NE(hash, *HashSecret("secret"));
  EXPECT_TRUE(VerifySecret(hash, "secret"));
  EXPECT_FALSE(VerifySecret(hash, "secrets"));
}

TEST_F(AuthenticatorTest, CertificatesAndSystemNames) {
  Authenticator users(Options());
  ASSERT_TRUE(users.AddUser("ann", Role::kAdmin, {.certificate = true, .system = true}).ok());
  ASSERT_TRUE(users.AddUser("bob", Role::kUser, {.certificate = true, .system = true}).ok());
  ASSERT_TRUE(users.RevokeUser("bob").ok());
  EXPECT_EQ(users.ByCertificate("ann")->role, Role::kAdmin);
  EXPECT_FALSE(users.ByCertificate("bob").ok());
  EXPECT_FALSE(users.ByCertificate("eve").ok());
  // The system identifies the account, so it need not be added as a user.
  EXPECT_EQ(users.BySystemName("eve")->role, Role::kUser);
  EXPECT_EQ(users.BySystemName("ann")->role, Role::kAdmin);
  EXPECT_FALSE(users.BySystemName("bob").ok());
  EXPECT_FALSE(users.BySystemName("local").ok());
}

// The name may belong to another person.
TEST_F(AuthenticatorTest, NamesOfOtherKindsAreNotAUsers) {
  Authenticator users(Options());
  ASSERT_TRUE(users.AddUser("ann", Role::kAdmin).ok());
  EXPECT_FALSE(users.ByCertificate("ann").ok());
  EXPECT_EQ(errors::Reason(users.BySystemName("ann").status()), "ANOTHER_USERS_NAME");
  ASSERT_TRUE(users.AddUser("cat", Role::kAdmin, {.certificate = true}).ok());
  EXPECT_TRUE(users.ByCertificate("cat").ok());
  EXPECT_FALSE(users.BySystemName("cat").ok());
  ASSERT_TRUE(users.AddUser("sam", Role::kAdmin, {.system = true}).ok());
  EXPECT_FALSE(users.ByCertificate("sam").ok());
  EXPECT_TRUE(users.BySystemName("sam").ok());
  // The account may already have sessions.
  EXPECT_EQ(errors::Reason(users.AddUser("games", Role::kUser).status()), "ACCOUNT_EXISTS");
  EXPECT_EQ(users.BySystemName("games")->role, Role::kUser);
  EXPECT_TRUE(users.AddUser("games", Role::kViewer, {.system = true}).ok());
  EXPECT_EQ(users.BySystemName("games")->role, Role::kViewer);
}

TEST_F(AuthenticatorTest, ATokenIsExchangedForAnother) {
  Authenticator users(Options());
  const std::string old = *users.AddUser("ann", Role::kUser);
  const std::string next = *users.AddToken("ann", absl::InfiniteDuration());
  EXPECT_EQ(users.ByToken(old)->user, "ann");
  EXPECT_EQ(users.ByToken(next)->user, "ann");
  EXPECT_EQ(*users.RevokeToken(old.substr(5, 16)), "ann");
  EXPECT_FALSE(users.ByToken(old).ok());
  EXPECT_EQ(users.ByToken(next)->user, "ann");
}

TEST_F(AuthenticatorTest, ATokenExpires) {
  Authenticator users(Options());
  const std::string old = *users.AddUser("ann", Role::kUser);
  const std::string brief = *users.AddToken("ann", absl::Seconds(10));
  const std::string unused = *users.AddToken("ann", absl::Seconds(10));
  now_ += absl::Seconds(9);
  EXPECT_TRUE(users.ByToken(brief).ok());
  now_ += absl::Seconds(1);
  // Also a token that was verified before.
  EXPECT_EQ(users.ByToken(brief).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(users.ByToken(unused).ok());
  EXPECT_TRUE(users.ByToken(old).ok());
}

}  // namespace
}  // namespace kiln::auth
