#include "server/runtime/cache/programs_by_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metrics.h"
#include "server/runtime/cache/variable_programs.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

using ::testing::ElementsAre;
using Key = ProgramsBySource::Key;

Key KeyOf(const std::string& source) { return {"cpu:0", source, {}}; }
Key KeyOf(int64_t n) { return {"cpu:0", "variable", {{"n", n}}}; }

// Adds a compiled entry. The program that it names makes no difference here.
std::shared_ptr<ProgramFuture> Add(ProgramsBySource& table, const Key& key,
                                   std::shared_ptr<Program> program = nullptr) {
  ProgramsBySource::Entry& entry = table.Add(key);
  auto bound = std::make_shared<BoundProgram>();
  bound->program = std::move(program);
  entry.future->Resolve(bound);
  table.EndCompiling(key, false, bound);
  return entry.future;
}

std::vector<bool> Has(ProgramsBySource& table, const std::vector<Key>& keys) {
  std::vector<bool> has;
  has.reserve(keys.size());
  for (const Key& key : keys) has.push_back(table.Find(key) != nullptr);
  return has;
}

TEST(ProgramsBySource, BeyondTheLimitTheLeastRecentlyUsedGo) {
  ProgramsBySource table({/*idle_programs=*/2, /*idle_bindings=*/100});
  for (const char* source : {"c", "b", "a"}) Add(table, KeyOf(source));
  ASSERT_NE(table.Use(KeyOf("c")), nullptr);
  EXPECT_EQ(table.Find(KeyOf("b"))->used, 2) << "looking is no use";
  EXPECT_EQ(table.EvictIdle().size(), 1);
  EXPECT_THAT(Has(table, {KeyOf("c"), KeyOf("b"), KeyOf("a")}), ElementsAre(true, false, true));
  EXPECT_TRUE(table.EvictIdle().empty()) << "within the limit";
}

// The program of Add's entries.
const std::vector<std::shared_ptr<Program>> kAdded = {nullptr};

TEST(ProgramsBySource, OutdatedProgramsStayUntilTheyAreReplaced) {
  ProgramsBySource table({/*idle_programs=*/2, /*idle_bindings=*/100});
  for (const char* source : {"a", "b"}) Add(table, KeyOf(source));
  table.Add(KeyOf("other")).future->Resolve(absl::InternalError("it has no program"));
  table.EndCompiling(KeyOf("other"), false, nullptr);
  EXPECT_TRUE(table.SetOutdated(kAdded).empty());
  EXPECT_THAT(Has(table, {KeyOf("a"), KeyOf("b"), KeyOf("other")}),
              ElementsAre(false, false, true));
  // Again, nothing changes.
  EXPECT_TRUE(table.SetOutdated(kAdded).empty());
  // The limit counts them.
  EXPECT_EQ(table.EvictIdle().size(), 1);
  EXPECT_TRUE(table.EvictIdle().empty());
  table.Add(KeyOf("b"));
  EXPECT_EQ(table.EndCompiling(KeyOf("b"), false, nullptr).size(), 1);
  EXPECT_THAT(Has(table, {KeyOf("b"), KeyOf("other")}), ElementsAre(true, true));
  EXPECT_TRUE(table.EvictIdle().empty());
}

TEST(ProgramsBySource, OldProgramsAreNeverOutdated) {
  ProgramsBySource table({/*idle_programs=*/9, /*idle_bindings=*/100});
  for (const char* source : {"old", "usual"}) Add(table, KeyOf(source));
  table.Find(KeyOf("old"))->is_old = true;
  table.Find(KeyOf("old"))->variables = std::make_shared<VariablePrograms>(nullptr);
  EXPECT_TRUE(table.VariablesOf(kAdded).empty());
  EXPECT_TRUE(table.SetOutdated(kAdded).empty());
  EXPECT_THAT(Has(table, {KeyOf("old"), KeyOf("usual")}), ElementsAre(true, false));
  table.ExtendTo(7);
  EXPECT_EQ(table.Find(KeyOf("old"))->last_change, 0);
}

TEST(ProgramsBySource, ASecondOutdatedProgramReplacesTheFirst) {
  ProgramsBySource table({/*idle_programs=*/9, /*idle_bindings=*/100});
  auto held = Add(table, KeyOf("a"));
  EXPECT_TRUE(table.SetOutdated(kAdded).empty());
  EXPECT_TRUE(table.Reclaim(1).empty());
  EXPECT_NE(Add(table, KeyOf("a")), held);
  EXPECT_EQ(table.SetOutdated(kAdded).size(), 1);
  held.reset();
  EXPECT_EQ(table.DropUnused(absl::UnixEpoch(), absl::ZeroDuration()).size(), 1);
}

TEST(ProgramsBySource, WhatSomebodyHoldsOrWaitsForStays) {
  ProgramsBySource table({/*idle_programs=*/0, /*idle_bindings=*/0});
  auto held = Add(table, KeyOf("held"));
  table.Add(KeyOf("compiling"));
  Add(table, KeyOf("idle"));
  EXPECT_EQ(table.EvictIdle().size(), 1);
  EXPECT_TRUE(table.Reclaim(1).empty());
  EXPECT_THAT(Has(table, {KeyOf("held"), KeyOf("compiling"), KeyOf("idle")}),
              ElementsAre(true, true, false));
  held.reset();
  EXPECT_EQ(table.EvictIdle().size(), 1);
  EXPECT_THAT(Has(table, {KeyOf("held"), KeyOf("compiling")}), ElementsAre(false, true));
}

TEST(ProgramsBySource, WhatNobodyUsesForATimeGoes) {
  ProgramsBySource table({/*idle_programs=*/10, /*idle_bindings=*/10});
  const absl::Time begin = absl::UnixEpoch();
  const absl::Duration limit = absl::Minutes(10);
  auto held = Add(table, KeyOf("held"));
  Add(table, KeyOf("used"));
  Add(table, KeyOf("unused"));
  EXPECT_TRUE(table.DropUnused(begin, limit).empty());
  ASSERT_NE(table.Use(KeyOf("used")), nullptr);
  EXPECT_TRUE(table.DropUnused(begin + absl::Minutes(9), limit).empty());
  EXPECT_EQ(table.DropUnused(begin + absl::Minutes(10), limit).size(), 1);
  EXPECT_THAT(Has(table, {KeyOf("held"), KeyOf("used"), KeyOf("unused")}),
              ElementsAre(true, true, false));
  // Its time begins when it is first found idle.
  held.reset();
  EXPECT_EQ(table.DropUnused(begin + absl::Minutes(19), limit).size(), 1);
  EXPECT_TRUE(table.DropUnused(begin + absl::Minutes(28), limit).empty());
  EXPECT_EQ(table.DropUnused(begin + absl::Minutes(29), limit).size(), 1);
}

TEST(ProgramsBySource, BindingsOfOneProgramHaveALimitOfTheirOwn) {
  ProgramsBySource table({/*idle_programs=*/2, /*idle_bindings=*/8});
  Add(table, KeyOf("own"));
  const auto bound = std::make_shared<const BoundProgram>();
  for (int64_t n = 1; n <= 8; ++n) ASSERT_TRUE(table.AddShared(KeyOf(n), bound));
  EXPECT_FALSE(table.AddShared(KeyOf(8), bound)) << "it is there";
  EXPECT_TRUE(table.EvictIdle().empty());
  // An entry that was compiled to be bound counts as well.
  ProgramsBySource::Entry& entry = table.Add(KeyOf(9));
  entry.future->Resolve(bound);
  table.EndCompiling(KeyOf(9), true, std::make_shared<BoundProgram>());
  EXPECT_EQ(table.EvictIdle().size(), 2) << "a quarter of the limit at once";
  EXPECT_THAT(Has(table, {KeyOf("own"), KeyOf(1), KeyOf(2), KeyOf(3), KeyOf(9)}),
              ElementsAre(true, false, false, true, true));
  for (int64_t n = 3; n <= 9; ++n) table.Erase(KeyOf(n));
  for (int64_t n = 1; n <= 8; ++n) ASSERT_TRUE(table.AddShared(KeyOf(n), bound));
  EXPECT_TRUE(table.EvictIdle().empty()) << "what was erased does not count";
}

TEST(ProgramsBySource, AProgramForAllValuesCountsOnce) {
  ProgramsBySource table({/*idle_programs=*/2, /*idle_bindings=*/100});
  const auto bound = std::make_shared<const BoundProgram>();
  for (int64_t n = 1; n <= 5; ++n) ASSERT_TRUE(table.AddShared(KeyOf(n), bound));
  Add(table, KeyOf("b"));
  EXPECT_TRUE(table.EvictIdle().empty()) << "two programs";
  Add(table, KeyOf("a"));
  const std::shared_ptr<ProgramFuture> held = table.Find(KeyOf(2))->future;
  EXPECT_EQ(table.EvictIdle().size(), 1) << "one of its bindings is held";
  EXPECT_THAT(Has(table, {KeyOf(1), KeyOf("b"), KeyOf("a")}), ElementsAre(true, false, true));
}

TEST(ProgramsBySource, AProgramForAllValuesGoesWithItsIdleBindings) {
  ProgramsBySource table({/*idle_programs=*/1, /*idle_bindings=*/100});
  const auto bound = std::make_shared<const BoundProgram>();
  for (int64_t n = 1; n <= 5; ++n) ASSERT_TRUE(table.AddShared(KeyOf(n), bound));
  Add(table, KeyOf("a"));
  EXPECT_EQ(table.EvictIdle().size(), 5);
  EXPECT_THAT(Has(table, {KeyOf(1), KeyOf(5), KeyOf("a")}), ElementsAre(false, false, true));
}

class ProgramsBySourceReclaim : public ::testing::Test {
 protected:
  std::shared_ptr<Program> MakeProgram(size_t bytes) {
    compiler::CompiledProgram compiled;
    compiled.graph_text.resize(bytes);
    return *Program::Load({device_, std::move(compiled)}, {}, {});
  }

  metrics::Metrics metrics_{"test"};
  ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1000), 0,
                        metrics_.ForDevice("cpu:0"), SystemClock()};
};

TEST_F(ProgramsBySourceReclaim, DropsTheOldestProgramsUntilThereIsRoom) {
  ProgramsBySource table({/*idle_programs=*/100, /*idle_bindings=*/100});
  constexpr int64_t kBytes = 1 << 20;
  auto bound = std::make_shared<BoundProgram>();
  bound->program = MakeProgram(kBytes);
  ASSERT_TRUE(table.AddShared(KeyOf(1), bound));
  ASSERT_TRUE(table.AddShared(KeyOf(2), bound));
  std::shared_ptr<ProgramFuture> held = table.Find(KeyOf(2))->future;
  for (const char* source : {"d", "c", "b", "a"}) Add(table, KeyOf(source), MakeProgram(kBytes));
  EXPECT_TRUE(table.Reclaim(0).empty());
  EXPECT_EQ(table.Reclaim(1).size(), 1);
  EXPECT_THAT(Has(table, {KeyOf("d"), KeyOf("c")}), ElementsAre(false, true));
  EXPECT_EQ(table.Reclaim(kBytes * 3 / 2).size(), 2);
  EXPECT_THAT(Has(table, {KeyOf("c"), KeyOf("b"), KeyOf("a")}), ElementsAre(false, false, true));
  EXPECT_EQ(table.Reclaim(100 * kBytes).size(), 1);
  EXPECT_THAT(Has(table, {KeyOf("a"), KeyOf(1)}), ElementsAre(false, true));
  held.reset();
  Add(table, KeyOf("e"), MakeProgram(kBytes));
  EXPECT_EQ(table.Reclaim(1).size(), 2) << "the program for all values is the older one";
  EXPECT_THAT(Has(table, {KeyOf(1), KeyOf(2), KeyOf("e")}), ElementsAre(false, false, true));
}

// Programs unload when the caller holds no lock.
TEST_F(ProgramsBySourceReclaim, WhatGoesLivesAsLongAsTheCallerWants) {
  ProgramsBySource table({/*idle_programs=*/0, /*idle_bindings=*/0});
  const std::weak_ptr<Program> program = [&] {
    auto made = MakeProgram(1);
    Add(table, KeyOf("a"), made);
    return made;
  }();
  ProgramsBySource::Dropped dropped = table.EvictIdle();
  EXPECT_FALSE(program.expired());
  dropped.clear();
  EXPECT_TRUE(program.expired());
}

TEST(ProgramsBySource, BindingsOfASourceShareWhatGoesWithTheLast) {
  ProgramsBySource table({/*idle_programs=*/100, /*idle_bindings=*/100});
  std::weak_ptr<VariablePrograms> variables;
  {
    ProgramsBySource::Entry& first = table.Add(KeyOf(5));
    EXPECT_EQ(first.variables, nullptr);
    first.variables = std::make_shared<VariablePrograms>(nullptr);
    variables = first.variables;
  }
  EXPECT_EQ(table.Add(KeyOf(9)).variables, variables.lock());
  EXPECT_TRUE(table.AddShared(KeyOf(1), std::make_shared<const BoundProgram>()));
  EXPECT_EQ(table.Find(KeyOf(1))->variables, variables.lock());
  EXPECT_EQ(table.Add({"cpu:1", "variable", {{"n", 5}}}).variables, nullptr) << "another device";
  EXPECT_EQ(table.Add({"cpu:0", "other", {{"n", 5}}}).variables, nullptr) << "another source";
  table.Erase(KeyOf(5));
  table.Erase(KeyOf(1));
  EXPECT_FALSE(variables.expired());
  table.Erase(KeyOf(9));
  EXPECT_TRUE(variables.expired());
}

}  // namespace
}  // namespace kiln::runtime
