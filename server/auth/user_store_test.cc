#include "server/auth/user_store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::auth {
namespace {

std::string NewFile() {
  std::string pattern = ::testing::TempDir() + "kiln_users_XXXXXX";
  return absl::StrCat(mkdtemp(pattern.data()), "/users");
}

StoredToken Token(const std::string& id) {
  return {.id = id,
          .hash = "$argon2id$v=19$m=8,t=1,p=1$a+/b$c",
          .created = absl::FromUnixSeconds(100),
          .expires = std::nullopt,
          .key = "k1"};
}

StoredUser Ann() {
  return {.name = "ann",
          .role = Role::kAdmin,
          .identities = {.certificate = true},
          .created = absl::FromUnixSeconds(100),
          .revoked = std::nullopt,
          .tokens = {Token("id1")}};
}

TEST(UserStore, KeepsUsersOverRestarts) {
  const std::string path = NewFile();
  {
    auto store = *UserStore::Open(path);
    EXPECT_TRUE(store->empty());
    ASSERT_TRUE(store->Add(Ann()).ok());
    ASSERT_TRUE(store->Add({.name = "bob", .role = Role::kViewer, .tokens = {Token("id2")}}).ok());
    ASSERT_TRUE(store->Revoke("bob", absl::FromUnixSeconds(200)).ok());
    StoredToken second = Token("id3");
    second.expires = absl::FromUnixSeconds(500);
    ASSERT_TRUE(store->AddToken("ann", second).ok());
  }
  auto store = *UserStore::Open(path);
  EXPECT_FALSE(store->empty());
  const auto ann = store->FindByToken("id1");
  ASSERT_TRUE(ann);
  EXPECT_EQ(ann->name, "ann");
  EXPECT_EQ(ann->role, Role::kAdmin);
  EXPECT_TRUE(ann->identities.certificate);
  EXPECT_FALSE(ann->identities.system);
  EXPECT_EQ(ann->created, absl::FromUnixSeconds(100));
  ASSERT_EQ(ann->tokens.size(), 2);
  EXPECT_EQ(ann->tokens[0].hash, Token("").hash);
  EXPECT_EQ(ann->tokens[0].expires, std::nullopt);
  EXPECT_EQ(ann->tokens[0].key, "k1");
  EXPECT_EQ(ann->tokens[1].id, "id3");
  EXPECT_EQ(ann->tokens[1].expires, absl::FromUnixSeconds(500));
  EXPECT_FALSE(store->FindByToken("id2"));
  EXPECT_EQ(store->Find("bob")->revoked, absl::FromUnixSeconds(200));
}

TEST(UserStore, ARevokedNameCanBeAddedAgain) {
  auto store = *UserStore::Open(NewFile());
  ASSERT_TRUE(store->Add(Ann()).ok());
  EXPECT_EQ(store->Add(Ann()).code(), absl::StatusCode::kAlreadyExists);
  const int64_t version = store->version();
  ASSERT_TRUE(store->Revoke("ann", absl::FromUnixSeconds(1)).ok());
  EXPECT_NE(store->version(), version);
  EXPECT_EQ(store->Revoke("ann", absl::FromUnixSeconds(1)).code(), absl::StatusCode::kNotFound);
  StoredUser again = Ann();
  again.tokens = {Token("id9")};
  EXPECT_TRUE(store->Add(again).ok());
  EXPECT_FALSE(store->FindByToken("id1"));
  EXPECT_TRUE(store->FindByToken("id9"));
}

TEST(UserStore, OneOfTheSystemsUsersIsAddedBeforeHeIsRevoked) {
  auto store = *UserStore::Open(NewFile());
  const absl::Status unknown = store->Revoke("ann", absl::FromUnixSeconds(1));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()),
              ::testing::HasSubstr("run `kiln user add NAME --by system` and then"));
  ASSERT_TRUE(store->Add(Ann()).ok());
  ASSERT_TRUE(store->Revoke("ann", absl::FromUnixSeconds(1)).ok());
  EXPECT_THAT(std::string(store->Revoke("ann", absl::FromUnixSeconds(1)).message()),
              ::testing::HasSubstr("not revoked"));
}

TEST(UserStore, TokensAreExchanged) {
  auto store = *UserStore::Open(NewFile());
  ASSERT_TRUE(store->Add(Ann()).ok());
  ASSERT_TRUE(store->AddToken("ann", Token("id2")).ok());
  const int64_t version = store->version();
  EXPECT_EQ(*store->RevokeToken("id1"), "ann");
  EXPECT_NE(store->version(), version);
  EXPECT_FALSE(store->FindByToken("id1"));
  EXPECT_EQ(store->FindByToken("id2")->name, "ann");
  EXPECT_EQ(store->RevokeToken("id1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store->AddToken("eve", Token("id3")).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store->Revoke("ann", absl::FromUnixSeconds(1)).ok());
  EXPECT_EQ(store->AddToken("ann", Token("id3")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store->RevokeToken("id2").status().code(), absl::StatusCode::kNotFound);
}

TEST(UserStore, AUserHasABoundedNumberOfTokensWithoutExpiredOnes) {
  auto store = *UserStore::Open(NewFile());
  ASSERT_TRUE(store->Add(Ann()).ok());
  StoredToken expiring = Token("old");
  expiring.expires = absl::FromUnixSeconds(200);
  ASSERT_TRUE(store->AddToken("ann", expiring).ok());
  for (size_t i = 2; i < kTokensMax; ++i)
    ASSERT_TRUE(store->AddToken("ann", Token(absl::StrCat("more", i))).ok());
  const absl::Status full = store->AddToken("ann", Token("one"));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), ::testing::HasSubstr("`kiln user token revoke ID`"));
  StoredToken later = Token("later");
  later.created = absl::FromUnixSeconds(200);
  EXPECT_TRUE(store->AddToken("ann", later).ok());
  EXPECT_FALSE(store->FindByToken("old"));
}

// A file of an earlier version: its users stay known by certificates and accounts, too.
TEST(UserStore, UsersOfAnEarlierVersionAreKept) {
  const std::string path = NewFile();
  std::ofstream(path) << "kiln users 2\nann admin id1 100 0 $argon2id$v=19$m=8,t=1,p=1$a$c\n"
                         "bob user id2 100 200 h\nend of 2\n";
  for (int start = 0; start < 2; ++start) {
    auto store = UserStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto ann = (*store)->FindByToken("id1");
    ASSERT_TRUE(ann);
    EXPECT_EQ(ann->role, Role::kAdmin);
    EXPECT_EQ(ann->tokens[0].hash, "$argon2id$v=19$m=8,t=1,p=1$a$c");
    EXPECT_TRUE(ann->identities.certificate && ann->identities.system);
    EXPECT_TRUE((*store)->Find("bob")->revoked);
    // Writes the file in the current version.
    ASSERT_TRUE((*store)->AddToken("ann", Token(absl::StrCat("id", 8 + start))).ok());
  }
}

TEST(UserStore, KnowsWhetherAKeyIsMissed) {
  auto store = *UserStore::Open(NewFile());
  EXPECT_FALSE(store->HasTokensOfAnotherKey(""));
  ASSERT_TRUE(store->Add(Ann()).ok());
  EXPECT_TRUE(store->HasTokensOfAnotherKey(""));
  EXPECT_FALSE(store->HasTokensOfAnotherKey("k1"));
  EXPECT_TRUE(store->HasTokensOfAnotherKey("k2"));
  ASSERT_TRUE(store->DropTokens().ok());
  EXPECT_FALSE(store->HasTokensOfAnotherKey("k2"));
  EXPECT_FALSE(store->FindByToken("id1"));
  EXPECT_FALSE(store->Find("ann")->revoked);
  ASSERT_TRUE(store->AddToken("ann", Token("id2")).ok());
  ASSERT_TRUE(store->Revoke("ann", absl::FromUnixSeconds(1)).ok());
  EXPECT_FALSE(store->HasTokensOfAnotherKey("k2"));
}

TEST(UserStore, HasABound) {
  auto store = *UserStore::Open(NewFile(), /*users_max=*/2);
  for (const char* name : {"a", "b"}) {
    StoredUser user = Ann();
    user.name = name;
    ASSERT_TRUE(store->Add(user).ok());
  }
  EXPECT_EQ(store->Add(Ann()).code(), absl::StatusCode::kResourceExhausted);
}

TEST(UserStore, ADamagedFileIsNoEmptyOne) {
  for (const char* text :
       {"", "kiln users 3\nann admin - 1 0 id;1;0;k\nend of 1\n",
        "kiln users 3\nann admin socket 1 0\nend of 1\n", "kiln users 3\nann admin - 1 0\n",
        "kiln users 2\nann admin\nend of 1\n", "kiln users 2\nann root id 1 0 h\nend of 1\n",
        "kiln users 2\n../x user id 1 0 h\nend of 1\n", "kiln users 2\nann user id 1 0 h\n",
        "something else\n"}) {
    const std::string path = NewFile();
    std::ofstream(path) << text;
    EXPECT_EQ(UserStore::Open(path).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST(UserStore, RefusesNamesThatCouldPassForSomethingElse) {
  for (const char* name : {"ann", "a", "Ann.Lee-3_x@host", "0"})
    EXPECT_TRUE(CheckUserName(name).ok()) << name;
  for (const std::string name :
       {"", " ann", "ann lee", "ann\nbob", "../ann", "-ann", "änn", "local", "a\"b"})
    EXPECT_EQ(CheckUserName(name).code(), absl::StatusCode::kInvalidArgument) << name;
  EXPECT_TRUE(CheckUserName(std::string(64, 'a')).ok());
  EXPECT_FALSE(CheckUserName(std::string(65, 'a')).ok());
}

TEST(UserStore, ReadsAReplacedFileAgain) {
  const std::string path = NewFile(), other = NewFile();
  auto store = *UserStore::Open(path);
  ASSERT_TRUE(store->Add(Ann()).ok());
  StoredUser bob = Ann();
  bob.name = "bob";
  bob.tokens = {Token("id2")};
  ASSERT_TRUE(store->Add(bob).ok());
  const int64_t version = store->version();
  EXPECT_THAT(*store->Reload(), ::testing::IsEmpty());
  {
    auto written = *UserStore::Open(other);
    StoredUser eve = Ann();
    eve.name = "eve";
    eve.tokens = {Token("id3")};
    ASSERT_TRUE(written->Add(eve).ok());
    ASSERT_TRUE(written->Add(bob).ok());
    ASSERT_TRUE(written->Revoke("bob", absl::FromUnixSeconds(200)).ok());
  }
  std::filesystem::copy_file(other, path, std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(*store->Reload(), ::testing::UnorderedElementsAre("ann", "bob"));
  EXPECT_GT(store->version(), version);
  EXPECT_TRUE(store->FindByToken("id3"));
  EXPECT_FALSE(store->FindByToken("id1"));
  // A file without users would let everybody in.
  std::ofstream(path) << "kiln users 3\nend of 0\n";
  EXPECT_EQ(store->Reload().status().code(), absl::StatusCode::kFailedPrecondition);
  // An unreadable file changes nothing.
  std::ofstream(path) << "kiln users 3\nmallory admin";
  EXPECT_EQ(store->Reload().status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(path);
  EXPECT_EQ(store->Reload().status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store->FindByToken("id3"));
}

}  // namespace
}  // namespace kiln::auth
