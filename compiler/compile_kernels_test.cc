// Kernels whose schedules are made from settings (Options::tuned).
#include "compiler/compile_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "compiler/cached_kernel.h"
#include "compiler/compiler.h"
#include "compiler/graph/text.h"
#include "compiler/kernel/kernel.h"
#include "compiler/search/space.h"

namespace kiln::compiler {
namespace {

using testing::HasSubstr;

drivers::Target Avx2() {
  drivers::Target target;
  target.architecture = "x86-64";
  target.processor = "x86-64-v3";
  target.features = "+avx2,+fma,+f16c";
  target.limits.vector_bytes = 32;
  target.limits.compute_units = 2;
  target.capabilities.fma = true;
  return target;
}

drivers::Target Gpu80() {
  drivers::Target target;
  target.architecture = "nvptx64";
  target.processor = "sm_80";
  target.features = "+ptx78";
  target.limits.vector_bytes = 4;
  target.limits.compute_units = 4;
  target.limits.threads_per_block = 1024;
  target.limits.threads_per_subgroup = 32;
  target.limits.shared_bytes_per_block = 48 << 10;
  target.capabilities.fma = true;
  target.costs = drivers::kGpuCosts;
  return target;
}

// One kernel: the sums of rows.
constexpr char kRowSums[] =
    "input 0 float32[64,1000]\n%0 = input float32[64,1000] index=0\n"
    "%1 = reduce_sum float32[64,1] %0 axes=[1]\noutput %1\n";

CompiledKernel CompileRowSums(const drivers::Target& target, const Options& options) {
  const auto graph = graph::Parse(kRowSums);
  EXPECT_TRUE(graph.ok()) << graph.status();
  auto program = Compile(*graph, target, options);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok() || program->kernels.size() != 1) return {};
  return std::move(program->kernels[0]);
}

Options WithSetting(const std::string& setting) {
  Options options;
  options.tuned = [setting](const std::string&, const drivers::Target&) { return setting; };
  return options;
}

// A legal setting and its schedule.
struct Choice {
  std::string setting;
  std::string schedule;
};
// Returns the heuristic's choice for a kernel, then the choices next to it whose schedules are
// others.
std::vector<Choice> ChoicesFor(const CompiledKernel& kernel, const drivers::Target& target) {
  ir::Context context;
  const auto parsed = kernel::ParseKernel(kernel.ir, context);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const search::Space space(
      *parsed, target,
      target.architecture == "x86-64" ? search::Machine::kLanes : search::Machine::kThreads);
  std::vector<search::Setting> settings = space.Neighbours(space.heuristic());
  settings.insert(settings.begin(), space.heuristic());
  std::vector<Choice> choices;
  for (const search::Setting& setting : settings) {
    const auto schedule = space.Write(setting);
    if (!schedule.ok()) continue;
    const std::string text = schedule::Print(*schedule);
    if (choices.empty() || text != choices[0].schedule)
      choices.push_back({search::Print(setting), text});
  }
  EXPECT_GT(choices.size(), 2u);
  return choices;
}

TEST(TunedKernelsTest, ASettingDecidesTheScheduleAndTheCode) {
  for (const drivers::Target& target : {Avx2(), Gpu80()}) {
    const CompiledKernel untuned = CompileRowSums(target, {});
    EXPECT_EQ(untuned.setting, "");
    int other_code = 0;
    for (const Choice& choice : ChoicesFor(untuned, target)) {
      const CompiledKernel tuned = CompileRowSums(target, WithSetting(choice.setting));
      EXPECT_EQ(tuned.schedule, choice.schedule);
      EXPECT_EQ(tuned.setting, choice.setting);
      EXPECT_EQ(tuned.setting_refusal, "");
      EXPECT_EQ(tuned.setting_ignored, "");
      EXPECT_EQ(tuned.ir, untuned.ir);
      EXPECT_EQ(tuned.digest, untuned.digest);
      if (choice.schedule == untuned.schedule) {
        EXPECT_EQ(tuned.image.Serialize(), untuned.image.Serialize());
      } else {
        other_code += tuned.image.code != untuned.image.code ? 1 : 0;
      }
    }
    EXPECT_GT(other_code, 1) << target.architecture;
  }
}

TEST(TunedKernelsTest, TheSettingIsAskedForByTheCanonicalKernelAndTheTarget) {
  std::vector<std::pair<std::string, std::string>> asked;
  Options options;
  options.tuned = [&asked](const std::string& kernel,
                           const drivers::Target& target) -> std::optional<std::string> {
    asked.emplace_back(kernel, target.CacheKey());
    return std::nullopt;
  };
  const CompiledKernel kernel = CompileRowSums(Avx2(), options);
  EXPECT_THAT(asked, testing::ElementsAre(std::pair(kernel.ir, Avx2().CacheKey())));
  EXPECT_EQ(kernel.schedule, CompileRowSums(Avx2(), {}).schedule);
  EXPECT_EQ(kernel.setting, "");
  // Without the pass there are no schedules to decide.
  options.disabled_passes = {"schedule"};
  EXPECT_EQ(CompileRowSums(Avx2(), options).schedule, "");
  EXPECT_EQ(asked.size(), 1u);
}

TEST(TunedKernelsTest, ASettingThatCannotBeUsedLeavesTheHeuristic) {
  const CompiledKernel untuned = CompileRowSums(Avx2(), {});
  const std::string later =
      absl::StrCat("setting ", search::kSettingVersion + 1, "\nstage 0 lanes=8\n");
  const std::pair<std::string, std::string> refused[] = {
      {"nonsense", "starts with the line 'setting 1'"},
      {later, "starts with the line 'setting 1'"},
      {"setting 1\nstair 0 lanes=8\n", "the setting's line 'stair 0 lanes=8'"},
      {"setting 1\nstage 0 form=sum_lanes lanes=5\n", "stage 0: lanes is 5"},
      {"setting 1\nstage 0 form=sum_lanes vectors=1000000\n", "stage 0: vectors is 1000000"},
  };
  for (const auto& [setting, why] : refused) {
    const CompiledKernel kernel = CompileRowSums(Avx2(), WithSetting(setting));
    EXPECT_THAT(kernel.setting_refusal, HasSubstr(why));
    EXPECT_EQ(kernel.setting, setting);
    EXPECT_EQ(kernel.refusal, "");
    EXPECT_EQ(kernel.schedule, untuned.schedule);
    EXPECT_EQ(kernel.image.Serialize(), untuned.image.Serialize());
  }
}

TEST(TunedKernelsTest, UnknownKnobsAreIgnoredAndNamed) {
  const Choice choice = ChoicesFor(CompileRowSums(Avx2(), {}), Avx2())[1];
  std::string setting = choice.setting;
  setting.insert(setting.find(" form="), " polish=3");
  const CompiledKernel kernel =
      CompileRowSums(Avx2(), WithSetting(absl::StrCat(setting, "stage 7 lanes=8\n")));
  EXPECT_EQ(kernel.schedule, choice.schedule);
  EXPECT_EQ(kernel.setting_refusal, "");
  EXPECT_THAT(kernel.setting_ignored, HasSubstr("'polish=3': this version has no such knob; "));
  EXPECT_THAT(kernel.setting_ignored, HasSubstr("stage 7: the kernel has no such part"));
  const CompiledKernel formless =
      CompileRowSums(Avx2(), WithSetting("setting 1\nstage 0 lanes=4\n"));
  EXPECT_EQ(formless.schedule, CompileRowSums(Avx2(), {}).schedule);
  EXPECT_THAT(formless.setting_ignored, HasSubstr("stage 0: it names no form"));
}

// Fails for some schedules, as a worker does.
class FailingWorker : public workers::KernelCompiler {
 public:
  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob& job) override {
    if (job.rehearsal) {
      rehearsed.push_back(*job.rehearsal);
      return rehearsal.ok() ? CompileJob(job) : rehearsal;
    }
    ++jobs;
    const auto found = errors.find(job.schedule);
    return found == errors.end() ? CompileJob(job) : found->second;
  }
  std::map<std::string, absl::Status> errors;  // by schedule
  int jobs = 0;                                // without rehearsals
  absl::Status rehearsal;                      // of each; OK: the real one's
  std::vector<workers::Rehearsal> rehearsed = {};
};

absl::Status Disproof() {
  absl::Status status = absl::InternalError("element 7 differs");
  status.SetPayload("kiln.disproof", absl::Cord());
  return status;
}

TEST(TunedKernelsTest, AScheduleThatCannotBeCompiledLeavesTheHeuristic) {
  const CompiledKernel untuned = CompileRowSums(Avx2(), {});
  const Choice choice = ChoicesFor(untuned, Avx2())[1];
  const absl::Status fatal[] = {Disproof(), absl::InternalError("the worker died"),
                                absl::ResourceExhaustedError("took longer than 60 seconds"),
                                absl::InvalidArgumentError("too many threads")};
  for (const absl::Status& error : fatal) {
    FailingWorker worker;
    worker.errors[choice.schedule] = error;
    Options options = WithSetting(choice.setting);
    options.kernel_compiler = &worker;
    const CompiledKernel kernel = CompileRowSums(Avx2(), options);
    EXPECT_EQ(worker.jobs, 2);
    EXPECT_EQ(kernel.setting_refusal, error.message());
    EXPECT_EQ(kernel.refusal, "");
    EXPECT_EQ(kernel.image.Serialize(), untuned.image.Serialize());
  }
}

TEST(TunedKernelsTest, BothSchedulesMayBeRefused) {
  const CompiledKernel untuned = CompileRowSums(Avx2(), {});
  const Choice choice = ChoicesFor(untuned, Avx2())[1];
  FailingWorker worker;
  worker.errors = {{choice.schedule, Disproof()}, {untuned.schedule, Disproof()}};
  Options options = WithSetting(choice.setting);
  options.kernel_compiler = &worker;
  const CompiledKernel kernel = CompileRowSums(Avx2(), options);
  EXPECT_EQ(kernel.setting_refusal, "element 7 differs");
  EXPECT_EQ(kernel.refused_schedule, untuned.schedule);
  EXPECT_EQ(kernel.schedule, "");
}

TEST(TunedKernelsTest, AnErrorThatIsNotOfTheSettingIsReturned) {
  const Choice choice = ChoicesFor(CompileRowSums(Avx2(), {}), Avx2())[1];
  FailingWorker worker;
  worker.errors[choice.schedule] = absl::CancelledError("the daemon stops");
  Options options = WithSetting(choice.setting);
  options.kernel_compiler = &worker;
  const auto graph = graph::Parse(kRowSums);
  EXPECT_TRUE(absl::IsCancelled(Compile(*graph, Avx2(), options).status()));
  EXPECT_EQ(worker.jobs, 1);
}

TEST(TunedKernelsTest, ASettingIsMadeInAWorkerFirst) {
  const CompiledKernel untuned = CompileRowSums(Avx2(), {});
  const Choice choice = ChoicesFor(untuned, Avx2())[1];
  FailingWorker worker;
  Options options = WithSetting(choice.setting);
  options.kernel_compiler = &worker;
  EXPECT_EQ(CompileRowSums(Avx2(), options).schedule, choice.schedule);
  ASSERT_EQ(worker.rehearsed.size(), 1u);
  EXPECT_EQ(worker.rehearsed[0].setting, choice.setting);
  // Two workers have died of it.
  worker.rehearsal = absl::InternalError("a violated invariant");
  const CompiledKernel kernel = CompileRowSums(Avx2(), options);
  EXPECT_EQ(kernel.setting_refusal, "a violated invariant");
  EXPECT_EQ(kernel.schedule, untuned.schedule);
  // There is none: that says nothing about the setting.
  worker.rehearsal = absl::UnavailableError("no process can be started");
  const auto graph = graph::Parse(kRowSums);
  EXPECT_TRUE(absl::IsUnavailable(Compile(*graph, Avx2(), options).status()));
}

// A product and its sum, which share a kernel unless they are kept apart.
constexpr char kProductAndSum[] = R"(input 0 float32[64,512]
input 1 float32[64,512]
%0 = input float32[64,512] index=0
%1 = input float32[64,512] index=1
%2 = mul float32[64,512] %0 %1
%3 = reduce_sum float32[64,1] %2 axes=[1]
output %2
output %3
)";

TEST(ChoicesTest, AreMadeInAWorkerFirst) {
  FailingWorker worker;
  Options options;
  options.kernel_compiler = &worker;
  options.choices = [](const std::string&, const drivers::Target&) {
    return std::optional<std::string>("choices 1\napart %3\n");
  };
  const auto graph = graph::Parse(kProductAndSum);
  const auto apart = Compile(*graph, Avx2(), options);
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(apart->kernels.size(), 2u);
  EXPECT_EQ(apart->choices.at(0).refusal, "");
  ASSERT_EQ(worker.rehearsed.size(), 1u);
  EXPECT_EQ(worker.rehearsed[0].choices, "choices 1\napart %3\n");
  EXPECT_EQ(worker.rehearsed[0].key, apart->choices.at(0).key);
  worker.rehearsal = absl::InternalError("a violated invariant");
  const auto together = Compile(*graph, Avx2(), options);
  ASSERT_TRUE(together.ok()) << together.status();
  EXPECT_EQ(together->kernels.size(), 1u);
  EXPECT_EQ(together->choices.at(0).text, "choices 1\napart %3\n");
  EXPECT_EQ(together->choices.at(0).refusal, "a violated invariant");
  worker.rehearsal = absl::UnavailableError("no process can be started");
  EXPECT_TRUE(absl::IsUnavailable(Compile(*graph, Avx2(), options).status()));
  // Nothing is tried without choices.
  worker.rehearsed.clear();
  options.choices = [](const std::string&, const drivers::Target&) { return std::nullopt; };
  EXPECT_TRUE(Compile(*graph, Avx2(), options).ok());
  EXPECT_TRUE(worker.rehearsed.empty());
}

class MapCache : public KernelCache {
 public:
  std::optional<std::string> Get(const std::string& key) override {
    const auto found = entries.find(key);
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  void Put(const std::string& key, const std::string& value) override { entries[key] = value; }
  std::map<std::string, std::string> entries;
};

TEST(TunedKernelsTest, TunedAndUntunedKernelsAreCachedApart) {
  MapCache cache;
  Options plain;
  plain.cache = &cache;
  const CompiledKernel untuned = CompileRowSums(Avx2(), plain);
  const std::vector<Choice> choices = ChoicesFor(untuned, Avx2());
  for (int round = 0; round < 2; ++round) {
    for (const size_t i : {1, 2}) {
      Options options = WithSetting(choices[i].setting);
      options.cache = &cache;
      const CompiledKernel kernel = CompileRowSums(Avx2(), options);
      EXPECT_EQ(kernel.from_cache, round == 1);
      EXPECT_EQ(kernel.schedule, choices[i].schedule);
      EXPECT_EQ(kernel.setting, choices[i].setting);
    }
  }
  EXPECT_EQ(cache.entries.size(), 3u);
  const CompiledKernel again = CompileRowSums(Avx2(), plain);
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.schedule, untuned.schedule);
  EXPECT_EQ(again.setting, "");
}

// So that nothing is compiled anew because settings exist for other kernels.
TEST(TunedKernelsTest, AnUntunedKernelsKeyDoesNotMentionSettings) {
  MapCache cache;
  Options options;
  options.cache = &cache;
  options.tuned = [](const std::string&, const drivers::Target&) { return std::nullopt; };
  const CompiledKernel kernel = CompileRowSums(Avx2(), options);
  ASSERT_EQ(cache.entries.size(), 1u);
  EXPECT_EQ(cache.entries.begin()->first,
            absl::StrCat(Version(), "\n", Avx2().CacheKey(), "\n", kernel.ir));
  EXPECT_EQ(CacheKey("kernel", Avx2(), {"b", "a"}),
            absl::StrCat(Version(), "\n", Avx2().CacheKey(), "\nwithout a,b\nkernel"));
}

TEST(TunedKernelsTest, TheCacheRemembersARefusal) {
  const Choice choice = ChoicesFor(CompileRowSums(Avx2(), {}), Avx2())[1];
  MapCache cache;
  FailingWorker worker;
  worker.errors[choice.schedule] = Disproof();
  Options options = WithSetting(absl::StrCat(choice.setting, "stage 7 lanes=8\n"));
  options.cache = &cache;
  options.kernel_compiler = &worker;
  const CompiledKernel first = CompileRowSums(Avx2(), options);
  const CompiledKernel second = CompileRowSums(Avx2(), options);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(worker.jobs, 2);
  EXPECT_EQ(second.setting, first.setting);
  EXPECT_EQ(second.setting_refusal, "element 7 differs");
  EXPECT_EQ(second.setting_ignored, first.setting_ignored);
  EXPECT_NE(second.setting_ignored, "");
}

TEST(TunedKernelsTest, EntriesWithASettingHaveItAtTheEnd) {
  CompiledKernel kernel;
  kernel.schedule = "split 0 8";
  kernel.image.architecture = "null";
  const std::string untuned = EncodeCachedKernel(kernel);
  kernel.setting = "setting 1\n";
  kernel.setting_refusal = "no";
  const std::string tuned = EncodeCachedKernel(kernel);
  EXPECT_EQ(tuned.substr(0, untuned.size()), untuned);
  EXPECT_EQ(DecodeCachedKernel(untuned)->setting, "");
  EXPECT_EQ(DecodeCachedKernel(tuned)->setting, "setting 1\n");
  EXPECT_EQ(DecodeCachedKernel(tuned)->setting_refusal, "no");
  for (size_t size = untuned.size() + 1; size < tuned.size(); ++size)
    EXPECT_FALSE(DecodeCachedKernel(tuned.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(DecodeCachedKernel(tuned + "x").has_value());
}

}  // namespace
}  // namespace kiln::compiler
