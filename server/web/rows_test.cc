#include "server/web/rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::web {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Fruit {
  std::string name;
  double weight = 0;
};
const Column<Fruit> kColumns[] = {
    {.name = "name", .text = [](const Fruit& fruit) -> const std::string& { return fruit.name; }},
    {.name = "weight", .number = [](const Fruit& fruit) { return fruit.weight; }},
};

// Returns the names of the rows that are kept.
absl::StatusOr<std::vector<std::string>> Kept(const std::string& text,
                                              std::vector<Fruit> rows = {
                                                  {"pear", 2}, {"fig", 1}, {"apple", 2}}) {
  const auto query = Query::Parse(text, {"sort", "order", "offset", "limit"});
  if (!query.ok()) return query.status();
  absl::Status status = KeepPart<Fruit>(*query, kColumns, &rows);
  if (!status.ok()) return status;
  std::vector<std::string> names;
  for (const Fruit& row : rows) names.push_back(row.name);
  return names;
}

TEST(KeepPart, SortsByTextAndByNumber) {
  EXPECT_THAT(Kept("").value(), ElementsAre("pear", "fig", "apple"));
  EXPECT_THAT(Kept("sort=name").value(), ElementsAre("apple", "fig", "pear"));
  EXPECT_THAT(Kept("sort=name&order=desc").value(), ElementsAre("pear", "fig", "apple"));
  EXPECT_THAT(Kept("sort=weight&order=asc").value(), ElementsAre("fig", "pear", "apple"));
  EXPECT_THAT(Kept("sort=weight&order=desc").value(), ElementsAre("pear", "apple", "fig"));
}

TEST(KeepPart, KeepsAPart) {
  EXPECT_THAT(Kept("sort=name&offset=1&limit=1").value(), ElementsAre("fig"));
  EXPECT_THAT(Kept("offset=2").value(), ElementsAre("apple"));
  EXPECT_THAT(Kept("offset=3").value(), IsEmpty());
  EXPECT_THAT(Kept("offset=1000000").value(), IsEmpty());
  EXPECT_THAT(Kept("", std::vector<Fruit>(kRowsMax + 1)).value(), SizeIs(kRowsUsual));
  EXPECT_THAT(Kept("limit=500", std::vector<Fruit>(kRowsMax + 1)).value(), SizeIs(kRowsMax));
}

TEST(KeepPart, RefusesWhatIsOutOfRange) {
  for (const char* text : {"sort=colour", "order=up", "limit=0", "limit=501", "offset=-1",
                           "offset=2147483649", "limit=many"})
    EXPECT_EQ(Kept(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(Kept("sort=colour").status().message()),
              HasSubstr("there is no column \"colour\"; allowed: name, weight"));
}

}  // namespace
}  // namespace kiln::web
