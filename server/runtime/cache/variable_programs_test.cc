#include "server/runtime/cache/variable_programs.h"

#include <atomic>
#include <optional>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/runtime/testing/copy_source.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

using kiln::testing::ShortOfMemory;
using kiln::testing::VariableCopySource;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class VariableProgramsTest : public ::testing::Test {
 protected:
  ProgramCompiler::Options Options() {
    ProgramCompiler::Options options;
    options.compile = [this](const auto& graph, const auto& target, const auto& options) {
      if (compiled_++ == 0) at_first_compile_();
      return kiln::testing::FakeCompile(graph, target, options);
    };
    options.metrics = &metrics_;
    options.clock = kiln::testing::StoppedClock();
    return options;
  }
  ProgramRequest RequestOf(std::shared_ptr<const GraphSource> source, int64_t n) {
    ProgramRequest request{std::move(source), {{"n", n}}, &device_, "", Payer(nullptr)};
    request.first_call = std::make_shared<FirstCall>(kiln::testing::StoppedClock().steady, "");
    return request;
  }
  VariablePrograms::Result Get(const std::shared_ptr<const GraphSource>& source, int64_t n) {
    std::optional<VariablePrograms::Result> program;
    variables_.Get(RequestOf(source, n), [&](const auto& result) { program = result; });
    return *program;
  }

  metrics::Metrics metrics_{"test"};
  ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1 << 20), 0,
                        metrics_.ForDevice("cpu:0"), SystemClock()};
  std::atomic<int> compiled_{0};
  std::function<void()> at_first_compile_ = [] {};
  ProgramCompiler compiler_{Options()};
  CompileThreads threads_{{.threads = 1, .threads_of_one = 1}};
  ProgramsByDigest programs_{&compiler_, &threads_};
  VariablePrograms variables_{&programs_};
};

TEST_F(VariableProgramsTest, OneIsCompiledAndBoundWhereItIsRight) {
  const auto source = std::make_shared<VariableCopySource>(1);
  const auto program = Get(source, 1);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(*Get(source, 8), *program);
  EXPECT_EQ(compiled_, 1);
  const auto bound = (*program)->BindAt({{"n", 5}}, *RequestOf(source, 5).Build());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ((*bound)->signature.inputs[0]->shape, (std::vector<int64_t>{5}));
  EXPECT_EQ(*static_cast<const int64_t*>((*bound)->variables->buffer()->host_pointer()), 5);
  EXPECT_TRUE(
      absl::IsNotFound((*program)->BindAt({{"n", 5}}, *RequestOf(source, 6).Build()).status()));
}

TEST_F(VariableProgramsTest, WhoeverAsksMeanwhileGetsTheSame) {
  const auto source = std::make_shared<VariableCopySource>(1);
  std::optional<VariablePrograms::Result> other;
  at_first_compile_ = [&] {
    variables_.Get(RequestOf(source, 2), [&](const auto& result) { other = result; });
    EXPECT_FALSE(other.has_value());
  };
  const auto program = Get(source, 1);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(**other, *program);
  EXPECT_EQ(compiled_, 1);
}

TEST_F(VariableProgramsTest, ThatThereIsNoneIsFoundOutOnce) {
  class CountingSource : public VariableCopySource {
   public:
    using VariableCopySource::VariableCopySource;
    absl::StatusOr<graph::Graph> Build(const Bindings& bindings, const Grow& grow,
                                       ops::FormSizes* sizes) const override {
      ++builds;
      return VariableCopySource::Build(bindings, grow, sizes);
    }
    mutable int builds = 0;
  };
  const auto source = std::make_shared<CountingSource>(3);
  EXPECT_FALSE(Get(source, 1).ok());
  const int builds = source->builds;
  EXPECT_GT(builds, 0);
  EXPECT_FALSE(Get(source, 2).ok());
  EXPECT_EQ(source->builds, builds);
  EXPECT_EQ(compiled_, 0);
}

TEST_F(VariableProgramsTest, WhatLackedHostMemoryIsTriedAgain) {
  const auto source = std::make_shared<ShortOfMemory>();
  EXPECT_TRUE(LacksHostMemory(Get(source, 1).status()));
  EXPECT_TRUE(LacksHostMemory(Get(source, 2).status()));
  source->Free();
  EXPECT_TRUE(Get(source, 2).ok());
}

TEST_F(VariableProgramsTest, WideBoundsHaveOneForEachPart) {
  const auto source = std::make_shared<VariableCopySource>(1, 1 << 14);
  const auto near = Get(source, 1), far = Get(source, 1 << 14);
  ASSERT_TRUE(near.ok()) << near.status();
  ASSERT_TRUE(far.ok()) << far.status();
  EXPECT_NE(*near, *far);
  EXPECT_EQ(*Get(source, 1024), *near);
  EXPECT_EQ(compiled_, 2);
}

TEST_F(VariableProgramsTest, AVariableThatCountsUpIsFollowedForAWhile) {
  const auto few = Get(std::make_shared<VariableCopySource>(1), 1);
  EXPECT_THAT((*few)->Following({{"n", 6}}), ElementsAre(Bindings{{"n", 7}}, Bindings{{"n", 8}}));
  EXPECT_THAT((*few)->Following({{"n", 8}}), IsEmpty());
  EXPECT_EQ(Preceding({{"n", 6}}), (Bindings{{"n", 5}}));
  VariablePrograms others(&programs_);
  std::optional<VariablePrograms::Result> many;
  others.Get(RequestOf(std::make_shared<VariableCopySource>(1, 100), 1),
             [&](const auto& result) { many = result; });
  const std::vector<Bindings> following = (**many)->Following({{"n", 6}});
  EXPECT_EQ(following.size(), 16);
  EXPECT_EQ(following.back(), (Bindings{{"n", 22}}));
}

}  // namespace
}  // namespace kiln::runtime
