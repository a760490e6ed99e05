#include "server/quota/limit_store.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::quota {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string NewFile() {
  std::string pattern = ::testing::TempDir() + "kiln_quotas_XXXXXX";
  return absl::StrCat(mkdtemp(pattern.data()), "/quotas");
}

Limits Defaults() {
  Limits limits;
  limits[Resource::kSessions] = 5;
  return limits;
}

TEST(LimitStore, KeepsWhatIsSetOverRestarts) {
  const std::string path = NewFile();
  {
    auto store = *LimitStore::Open(path, Defaults());
    EXPECT_EQ(store->LimitsOf("ann"), Defaults());
    ASSERT_TRUE(
        store->Set("ann", {{Resource::kDeviceMemory, int64_t{4} << 30}, {Resource::kSessions, 0}})
            .ok());
    ASSERT_TRUE(store->Set("bob@x", {{Resource::kBuffers, 7}}).ok());
  }
  auto store = *LimitStore::Open(path, Limits());
  const Limits limits = store->LimitsOf("ann");
  EXPECT_EQ(limits[Resource::kDeviceMemory], int64_t{4} << 30);
  EXPECT_EQ(limits[Resource::kSessions], 0);
  EXPECT_EQ(limits[Resource::kPrograms], Limits()[Resource::kPrograms]);
  EXPECT_EQ(store->LimitsOf("bob@x")[Resource::kBuffers], 7);
  EXPECT_EQ(store->LimitsOf("carl"), Limits());
}

TEST(LimitStore, TheDefaultComesBack) {
  auto store = *LimitStore::Open(NewFile(), Defaults());
  ASSERT_TRUE(store->Set("ann", {{Resource::kSessions, 9}, {Resource::kBuffers, 2}}).ok());
  ASSERT_TRUE(store->Set("ann", {{Resource::kSessions, std::nullopt}}).ok());
  EXPECT_EQ(store->LimitsOf("ann")[Resource::kSessions], 5);
  EXPECT_THAT(store->List(), ElementsAre(Pair("ann", ElementsAre(Pair(Resource::kBuffers, 2)))));
  ASSERT_TRUE(store->Set("ann", {{Resource::kBuffers, std::nullopt}}).ok());
  EXPECT_THAT(store->List(), IsEmpty());
}

TEST(LimitStore, ReadsAReplacedFileAgain) {
  const std::string path = NewFile();
  auto store = *LimitStore::Open(path, Limits());
  {
    auto other = *LimitStore::Open(path, Limits());
    ASSERT_TRUE(other->Set("ann", {{Resource::kBuffers, 7}}).ok());
  }
  EXPECT_EQ(store->LimitsOf("ann"), Limits());
  ASSERT_TRUE(store->Reload(Defaults()).ok());
  EXPECT_EQ(store->LimitsOf("ann")[Resource::kBuffers], 7);
  EXPECT_EQ(store->LimitsOf("ann")[Resource::kSessions], 5);
  std::ofstream(path) << "garbage";
  Limits other;
  other[Resource::kSessions] = 6;
  EXPECT_EQ(store->Reload(other).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store->LimitsOf("ann")[Resource::kBuffers], 7);
  EXPECT_EQ(store->LimitsOf("ann")[Resource::kSessions], 6);
}

TEST(LimitStore, HasABound) {
  auto store = *LimitStore::Open(NewFile(), Limits(), /*users_max=*/1);
  ASSERT_TRUE(store->Set("ann", {{Resource::kSessions, 1}}).ok());
  EXPECT_EQ(errors::Reason(store->Set("bob", {{Resource::kSessions, 1}})), "TOO_MANY_QUOTAS");
  EXPECT_TRUE(store->Set("ann", {{Resource::kSessions, 2}}).ok());
  EXPECT_EQ(store->LimitsOf("bob"), Limits());
}

TEST(LimitStore, ADamagedFileIsRefused) {
  for (const char* text :
       {"", "kiln users 2\nend of 0\n", "kiln quotas 2\nann\nend of 1\n",
        "kiln quotas 2\nann gold=1\nend of 1\n", "kiln quotas 2\nann sessions=-1\nend of 1\n",
        "kiln quotas 2\nann sessions=\nend of 1\n", "kiln quotas 2\n sessions=1\nend of 1\n"}) {
    const std::string path = NewFile();
    std::ofstream(path) << text;
    EXPECT_EQ(LimitStore::Open(path, Limits()).status().code(), absl::StatusCode::kDataLoss)
        << text;
  }
}

}  // namespace
}  // namespace kiln::quota
