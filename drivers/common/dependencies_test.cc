#include "drivers/common/dependencies.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::drivers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RangeAccess Read(int slot, int64_t offset = 0, int64_t bytes = 64) {
  return {{slot, offset, bytes}, Access::kRead};
}
RangeAccess Write(int slot, int64_t offset = 0, int64_t bytes = 64) {
  return {{slot, offset, bytes}, Access::kWrite};
}

TEST(DependenciesTest, WhatReadsWaitsForWhatWrote) {
  Dependencies dependencies(3);
  EXPECT_THAT(dependencies.Add({Write(0)}), IsEmpty());
  EXPECT_THAT(dependencies.Add({Write(1)}), IsEmpty());
  EXPECT_THAT(dependencies.Add({Read(0), Read(1), Write(2)}), ElementsAre(0, 1));
  EXPECT_THAT(dependencies.Add({Read(0)}), ElementsAre(0));
}

TEST(DependenciesTest, WhatOverwritesWaitsForReadersAndWriters) {
  Dependencies dependencies(2);
  EXPECT_THAT(dependencies.Add({Read(0), Write(1)}), IsEmpty());
  EXPECT_THAT(dependencies.Add({Read(0)}), IsEmpty());
  EXPECT_THAT(dependencies.Add({Write(0)}), ElementsAre(0, 1));
  EXPECT_THAT(dependencies.Add({Write(1)}), ElementsAre(0));
  // The readers precede the write that overwrote what they read.
  EXPECT_THAT(dependencies.Add({Write(0)}), ElementsAre(2));
}

TEST(DependenciesTest, PartsOfASlotAreApart) {
  Dependencies dependencies(1);
  EXPECT_THAT(dependencies.Add({Write(0, 0)}), IsEmpty());
  EXPECT_THAT(dependencies.Add({Write(0, 64)}), IsEmpty());
  EXPECT_THAT(dependencies.Add({Read(0, 32, 64)}), ElementsAre(0, 1));
  EXPECT_THAT(dependencies.Add({Write(0, 64)}), ElementsAre(1, 2));
  // The earlier write still counts for its own part.
  EXPECT_THAT(dependencies.Add({Read(0, 0, 128)}), ElementsAre(0, 3));
}

TEST(DependenciesTest, NothingIsNoAccess) {
  Dependencies dependencies(1);
  EXPECT_THAT(dependencies.Add({Write(0, 0, 0)}), IsEmpty());
  EXPECT_THAT(dependencies.Add({Read(0)}), IsEmpty());
}

TEST(DependenciesTest, ACommandDoesNotWaitForItself) {
  Dependencies dependencies(1);
  EXPECT_THAT(dependencies.Add({Read(0), {{0, 0, 64}, Access::kReadWrite}, Write(0, 32)}),
              IsEmpty());
  EXPECT_THAT(dependencies.Add({{{0, 0, 64}, Access::kReadWrite}}), ElementsAre(0));
}

}  // namespace
}  // namespace kiln::drivers
