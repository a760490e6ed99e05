#include "server/runtime/cache/program_compiler.h"

#include <map>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/errors/errors.h"
#include "server/runtime/testing/copy_source.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"

namespace kiln::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ProgramCompilerTest : public ::testing::Test {
 protected:
  ProgramCompiler::Options Options() {
    ProgramCompiler::Options options;
    options.compile = [this](const auto& graph, const auto& target, const auto& options) {
      ++compiled_;
      return kiln::testing::FakeCompile(graph, target, options);
    };
    options.metrics = &metrics_;
    options.clock = kiln::testing::StoppedClock();
    return options;
  }
  absl::StatusOr<std::shared_ptr<Program>> Compile(
      const ProgramCompiler::Options& options, int64_t count,
      std::shared_ptr<memory::Account> account = nullptr) {
    ProgramCompiler compiler(options);
    ProgramRequest request{std::make_shared<kiln::testing::CopySource>("source", count),
                           {},
                           &device_,
                           "name",
                           Payer(std::move(account))};
    request.first_call = std::make_shared<FirstCall>(options.clock.steady, "wait_for_thread");
    return compiler.Compile(request, *request.Build(), "digest");
  }

  // Blocks are as large as the target allows.
  ProgramCompiler::Options OptionsWithBlocks() {
    ProgramCompiler::Options options = Options();
    options.compile = [this](const auto& graph, const auto& target, const auto& options) {
      block_sizes_.push_back(target.limits.threads_per_block);
      auto program = kiln::testing::FakeCompile(graph, target, options);
      for (compiler::CompiledKernel& kernel : program->kernels)
        kernel.image.block_size = target.limits.threads_per_block;
      return program;
    };
    return options;
  }
  kiln::testing::FakeDevice& fake() {
    return static_cast<kiln::testing::FakeDevice&>(device_.device());
  }

  metrics::Metrics metrics_{"test"};
  ManagedDevice device_{std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1000), 0,
                        metrics_.ForDevice("cpu:0"), SystemClock()};
  std::vector<int> block_sizes_;
  int compiled_ = 0;
};

TEST_F(ProgramCompilerTest, ChargesThePayerAsLongAsTheProgramLives) {
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 4);
  const auto account = memory->NewAccount("session s1");
  auto program = Compile(Options(), 4, account);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->description().digest, "digest");
  EXPECT_EQ((*program)->description().source_key, "source");
  EXPECT_EQ((*program)->description().name, "name");
  EXPECT_EQ(memory->used_bytes(memory::Use::kPrograms), (*program)->host_bytes());
  program->reset();
  EXPECT_EQ(account->bytes(), 0);
}

TEST_F(ProgramCompilerTest, TunedSettingsReachTheCompilerAndTheirRefusalsTheLog) {
  ProgramCompiler::Options options = Options();
  options.tuned = [](const std::string& kernel, const drivers::Target&, const std::string&,
                     SettingsChange) { return std::optional("setting of " + kernel); };
  options.compile = [](const auto& graph, const auto& target, const auto& options) {
    auto program = kiln::testing::FakeCompile(graph, target, options);
    for (compiler::CompiledKernel& kernel : program->kernels) {
      kernel.setting = options.tuned("k", target).value_or("");
      kernel.setting_refusal = "lanes is 5";
    }
    return program;
  };
  ::testing::internal::CaptureStderr();
  const auto program = Compile(options, 4);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(log, HasSubstr("level=warning event=setting_refused"));
  EXPECT_THAT(log, HasSubstr("why=\"lanes is 5\" setting=\"setting of k\""));
}

// Choices for a graph have numbers of changes, as settings of kernels have.
TEST_F(ProgramCompilerTest, ChoicesAreThoseOfTheRequestsChange) {
  std::map<SettingsChange, std::string> choices;
  ProgramCompiler::Options options = Options();
  options.tuned = [&](const std::string& key, const drivers::Target&, const std::string&,
                      SettingsChange change) -> std::optional<std::string> {
    if (key != "graph g\n" || !choices.contains(change)) return std::nullopt;
    return choices[change];
  };
  std::string refusal;
  options.compile = [&refusal](const auto& graph, const auto& target, const auto& options) {
    auto program = kiln::testing::FakeCompile(graph, target, options);
    const std::string key = "graph g\n";
    program->choices = {
        {.key = key, .text = options.choices(key, target).value_or(""), .refusal = refusal}};
    return program;
  };
  const auto program = Compile(options, 4);  // a request of the newest change
  ASSERT_TRUE(program.ok()) << program.status();
  const ProgramCompiler compiler(options);
  choices[5] = "choices 1\napart %3\n";
  EXPECT_TRUE(compiler.IsOutdated(**program, 5));
  EXPECT_FALSE(compiler.IsOutdated(**program, 4));
  // It does not depend on schedules.
  options.disabled_passes = {"schedule"};
  EXPECT_TRUE(ProgramCompiler(options).IsOutdated(**program, 5));
  choices[kNewestSettings] = choices[5];
  refusal = "it cannot be made";
  ::testing::internal::CaptureStderr();
  const auto refused = Compile(options, 4);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(compiler.IsOutdated(**refused, 5));
  EXPECT_THAT(log, HasSubstr("level=warning event=choices_refused"));
  EXPECT_THAT(log, HasSubstr("why=\"it cannot be made\""));
}

TEST_F(ProgramCompilerTest, WhatCannotFitTheDeviceIsNotCompiled) {
  const absl::Status status = Compile(Options(), 1000).status();
  EXPECT_EQ(errors::Reason(status), "OUT_OF_MEMORY");
  EXPECT_EQ(compiled_, 0);
}

TEST_F(ProgramCompilerTest, RefusesWhatRunsTooLong) {
  ProgramCompiler::Options options = Options();
  options.run_seconds_max = 1;
  EXPECT_TRUE(Compile(options, 4).ok());
  options.run_seconds_max = 1e-9;
  const absl::Status status = Compile(options, 4).status();
  EXPECT_EQ(errors::Reason(status), "RUN_TOO_LONG");
  EXPECT_THAT(std::string(status.message()), HasSubstr("--run_seconds_limit"));
}

TEST_F(ProgramCompilerTest, CompilesAgainWithSmallerBlocksWhereTheDeviceAsksForThem) {
  fake().LimitBlocks(256, 96);
  EXPECT_TRUE(Compile(OptionsWithBlocks(), 4).ok());
  EXPECT_THAT(block_sizes_, ElementsAre(256, 96));
}

TEST_F(ProgramCompilerTest, BlocksThatNeverFitAreAnError) {
  fake().LimitBlocks(256, 0);
  const absl::Status status = Compile(OptionsWithBlocks(), 4).status();
  EXPECT_EQ(status.message(), "too many registers");
  EXPECT_THAT(block_sizes_, ElementsAre(256));
}

TEST_F(ProgramCompilerTest, BlocksAreTooLargeForAVendorsCompilerToo) {
  ProgramCompiler::Options options = Options();
  options.compile = [this](const auto& graph, const auto& target,
                           const auto& options) -> absl::StatusOr<compiler::CompiledProgram> {
    block_sizes_.push_back(target.limits.threads_per_block);
    if (target.limits.threads_per_block > 96) return drivers::BlocksTooLarge("registers", 96);
    return kiln::testing::FakeCompile(graph, target, options);
  };
  fake().LimitBlocks(256, 256);
  EXPECT_TRUE(Compile(options, 4).ok());
  EXPECT_THAT(block_sizes_, ElementsAre(256, 96));
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_compile_failures_total 0\n"));
}

// A cache with one entry: the next compilation finds what one has stored.
class OneEntry : public compiler::KernelCache {
 public:
  std::optional<std::string> Get(const std::string&) override { return value; }
  void Put(const std::string&, const std::string& put) override { value = put; }
  std::optional<std::string> value;
};

class FinishedImagesTest : public ProgramCompilerTest {
 protected:
  // Kernels are finished anew, or taken from the cache.
  ProgramCompiler::Options OptionsWithFinisher() {
    ProgramCompiler::Options options = Options();
    options.kernel_cache = &cache_;
    options.compile = [this](const auto& graph, const auto& target,
                             const compiler::Options& options) {
      auto program = kiln::testing::FakeCompile(graph, target, {});
      const std::optional<std::string> cached = options.cache->Get("key");
      const bool finishes = !target.finisher.driver.empty();
      made_.push_back(!finishes ? "" : cached ? *cached : "fresh");
      if (finishes && !cached) options.cache->Put("key", "fresh");
      for (compiler::CompiledKernel& kernel : program->kernels)
        kernel.image.finished = made_.back();
      return program;
    };
    return options;
  }
  OneEntry cache_;
  std::vector<std::string> made_;
};

TEST_F(FinishedImagesTest, WhatTheCacheHadIsFinishedAgainIfTheDeviceRefusesIt) {
  fake().TakeFinished("fresh");
  cache_.value = "of another version";
  EXPECT_TRUE(Compile(OptionsWithFinisher(), 4).ok());
  EXPECT_THAT(made_, ElementsAre("of another version", "fresh"));
  // The next compilation finds it.
  EXPECT_TRUE(Compile(OptionsWithFinisher(), 4).ok());
  EXPECT_THAT(made_, ElementsAre("of another version", "fresh", "fresh"));
}

TEST_F(FinishedImagesTest, AProgramThatIsRefusedTwiceIsLoadedAsItIs) {
  fake().TakeFinished("nothing");
  cache_.value = "of another version";
  EXPECT_TRUE(Compile(OptionsWithFinisher(), 4).ok());
  EXPECT_THAT(made_, ElementsAre("of another version", "fresh", ""));
  // Another program is still finished in advance.
  fake().TakeFinished("fresh");
  EXPECT_TRUE(Compile(OptionsWithFinisher(), 4).ok());
  EXPECT_THAT(made_, ElementsAre("of another version", "fresh", "", "fresh"));
}

TEST_F(ProgramCompilerTest, FailuresAreCounted) {
  ProgramCompiler::Options options = Options();
  options.compile = [](const auto&, const auto&, const auto&) {
    return absl::InternalError("defect");
  };
  EXPECT_EQ(Compile(options, 4).status().message(), "defect");
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_compile_failures_total 1\n"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_compiles_total 0\n"));
}

}  // namespace
}  // namespace kiln::runtime
