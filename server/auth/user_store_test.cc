#include "server/auth/user_store.h"

#include <cstdlib>
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

StoredUser Ann() {
  return {"ann", Role::kAdmin, "id1", "$argon2id$x", absl::FromUnixSeconds(100), std::nullopt};
}

TEST(UserStore, KeepsUsersOverRestarts) {
  const std::string path = NewFile();
  {
    auto store = *UserStore::Open(path);
    EXPECT_TRUE(store->empty());
    ASSERT_TRUE(store->Add(Ann()).ok());
    ASSERT_TRUE(store->Add({"bob", Role::kViewer, "id2", "h", absl::FromUnixSeconds(1), {}}).ok());
    ASSERT_TRUE(store->Revoke("bob", absl::FromUnixSeconds(200)).ok());
  }
  auto store = *UserStore::Open(path);
  EXPECT_FALSE(store->empty());
  const auto ann = store->FindByToken("id1");
  ASSERT_TRUE(ann);
  EXPECT_EQ(ann->name, "ann");
  EXPECT_EQ(ann->role, Role::kAdmin);
  EXPECT_EQ(ann->hash, "$argon2id$x");
  EXPECT_EQ(ann->created, absl::FromUnixSeconds(100));
  EXPECT_FALSE(store->FindByName("bob"));
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
  again.token_id = "id9";
  EXPECT_TRUE(store->Add(again).ok());
  EXPECT_FALSE(store->FindByToken("id1"));
  EXPECT_TRUE(store->FindByToken("id9"));
}

TEST(UserStore, OneOfTheSystemsUsersIsAddedBeforeHeIsRevoked) {
  auto store = *UserStore::Open(NewFile());
  const absl::Status unknown = store->Revoke("ann", absl::FromUnixSeconds(1));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), ::testing::HasSubstr("`kiln user add NAME` first"));
  ASSERT_TRUE(store->Add(Ann()).ok());
  ASSERT_TRUE(store->Revoke("ann", absl::FromUnixSeconds(1)).ok());
  EXPECT_THAT(std::string(store->Revoke("ann", absl::FromUnixSeconds(1)).message()),
              ::testing::HasSubstr("not revoked"));
}

TEST(UserStore, HasABound) {
  auto store = *UserStore::Open(NewFile(), /*most_users=*/2);
  for (const char* name : {"a", "b"}) {
    StoredUser user = Ann();
    user.name = name;
    ASSERT_TRUE(store->Add(user).ok());
  }
  EXPECT_EQ(store->Add(Ann()).code(), absl::StatusCode::kResourceExhausted);
}

TEST(UserStore, ADamagedFileIsNoEmptyOne) {
  for (const char* text :
       {"", "kiln users 2\nann admin\nend of 1\n", "kiln users 2\nann root id 1 0 h\nend of 1\n",
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

}  // namespace
}  // namespace kiln::auth
