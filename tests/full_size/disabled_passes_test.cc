// The compiler with some passes disabled.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compiler.h"
#include "drivers/cpu/host.h"
#include "tests/golden/model_builder.h"

namespace kiln::full_size {
namespace {

class MapCache : public compiler::KernelCache {
 public:
  std::optional<std::string> Get(const std::string& key) override {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    return found->second;
  }
  void Put(const std::string& key, const std::string& value) override { entries_[key] = value; }

 private:
  std::map<std::string, std::string> entries_;
};

graph::Graph Product() {
  golden::ModelBuilder m;
  m.Output(m.Op("matmul", {m.Input({64, 96}), m.Input({96, 128})}));
  return m.Finish();
}

TEST(PlainSchedule, HasNoDirectivesAndOneTask) {
  const auto target = drivers::cpu::DetectTarget(2);
  ASSERT_TRUE(target.ok()) << target.status();
  const auto chosen = compiler::Compile(Product(), *target, {});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_NE(chosen->kernels[0].schedule, "");
  compiler::Options options;
  options.disabled_passes = {"schedule"};
  const auto plain = compiler::Compile(Product(), *target, options);
  ASSERT_TRUE(plain.ok()) << plain.status();
  ASSERT_EQ(plain->kernels.size(), chosen->kernels.size());
  for (size_t i = 0; i < plain->kernels.size(); ++i) {
    EXPECT_EQ(plain->kernels[i].schedule, "");
    EXPECT_EQ(plain->kernels[i].image.grid_size, 1);
    EXPECT_EQ(plain->kernels[i].ir, chosen->kernels[i].ir);
  }
}

TEST(PlainSchedule, IsCachedApart) {
  const auto target = drivers::cpu::DetectTarget(2);
  ASSERT_TRUE(target.ok()) << target.status();
  MapCache cache;
  compiler::Options options;
  options.cache = &cache;
  for (const bool plain : {false, true, false, true}) {
    options.disabled_passes = {};
    if (plain) options.disabled_passes = {"schedule"};
    const auto program = compiler::Compile(Product(), *target, options);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->kernels[0].schedule.empty(), plain);
  }
}

// The cache never returns a kernel that was compiled with other passes.
TEST(DisabledPasses, ArePartOfTheCachesKey) {
  const auto target = drivers::cpu::DetectTarget(2);
  ASSERT_TRUE(target.ok()) << target.status();
  MapCache cache;
  compiler::Options options;
  options.cache = &cache;
  const auto is_known = [&](std::vector<std::string> disabled) {
    options.disabled_passes = std::move(disabled);
    const auto program = compiler::Compile(Product(), *target, options);
    EXPECT_TRUE(program.ok()) << program.status();
    return program->kernels[0].from_cache;
  };
  EXPECT_FALSE(is_known({}));
  EXPECT_FALSE(is_known({"order_groups"}));
  EXPECT_FALSE(is_known({"order_groups", "merge_rows"}));
  EXPECT_TRUE(is_known({"merge_rows", "order_groups", "merge_rows"})) << "a set";
  EXPECT_TRUE(is_known({}));
}

}  // namespace
}  // namespace kiln::full_size
