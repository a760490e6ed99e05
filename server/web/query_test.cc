#include "server/web/query.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::web {
namespace {

using ::testing::HasSubstr;

TEST(Query, HasDecodedValues) {
  const auto query = Query::Parse("a=x%20y+z%2b&b=&c=1=2", {"a", "b", "c", "d"});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->Text("a"), "x y z+");
  EXPECT_EQ(query->Text("b"), "");
  EXPECT_EQ(query->Text("c"), "1=2");
  EXPECT_EQ(query->Text("d"), "");
  EXPECT_TRUE(Query::Parse("", {}).ok());
}

TEST(Query, RefusesWhatItDoesNotKnow) {
  struct Case {
    const char* text;
    const char* why;
  };
  for (const Case& bad : {Case{"e=1", "there is no \"e\"; allowed: a, b"},
                          Case{"a=1&a=2", "\"a\" is given twice"}, Case{"a", "is not NAME=VALUE"},
                          Case{"a=%2", "is not NAME=VALUE"}, Case{"a=%zz", "is not NAME=VALUE"}}) {
    const auto query = Query::Parse(bad.text, {"a", "b"});
    EXPECT_EQ(query.status().code(), absl::StatusCode::kInvalidArgument) << bad.text;
    EXPECT_THAT(std::string(query.status().message()), HasSubstr(bad.why));
  }
}

TEST(Query, NumbersHaveARange) {
  const auto query = Query::Parse("a=7&b=9999999999999999999999&c=x&d=-1", {"a", "b", "c", "d"});
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->Number("a", 1, 0, 7).value(), 7);
  EXPECT_EQ(query->Number("e", 5, 0, 7).value(), 5);
  for (const char* name : {"b", "c", "d"}) EXPECT_FALSE(query->Number(name, 1, 0, 7).ok()) << name;
  EXPECT_FALSE(query->Number("a", 1, 0, 6).ok());
}

}  // namespace
}  // namespace kiln::web
