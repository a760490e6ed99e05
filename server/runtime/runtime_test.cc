#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "compiler/graph/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/errors/errors.h"
#include "server/runtime/cache/graph_source.h"
#include "server/runtime/cache/program_cache.h"
#include "server/runtime/device/managed_device.h"
#include "server/runtime/program/explain.h"
#include "server/runtime/run/run.h"
#include "server/runtime/testing/copy_source.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"
#include "tests/eventually.h"

namespace kiln::runtime {
namespace {

using kiln::testing::CopySource;
using kiln::testing::Eventually;
using kiln::testing::ShortOfMemory;
using kiln::testing::VariableCopySource;
using ::testing::HasSubstr;

TEST(Bindings, NameExactlyTheVariablesWithinBounds) {
  const std::vector<Variable> variables = {{"n", 1, 8}, {"m", 2, 2}};
  EXPECT_TRUE(CheckBindings(variables, {{"n", 8}, {"m", 2}}).ok());
  EXPECT_THAT(std::string(CheckBindings(variables, {{"n", 8}}).message()),
              HasSubstr("\"m\" is not bound"));
  EXPECT_THAT(std::string(CheckBindings(variables, {{"n", 0}, {"m", 2}}).message()),
              HasSubstr("not in [1, 8]"));
  EXPECT_THAT(std::string(CheckBindings(variables, {{"n", 1}, {"m", 2}, {"k", 1}}).message()),
              HasSubstr("\"k\" is bound, but the graph has no such variable"));
  EXPECT_EQ(SmallestBindings(variables), (Bindings{{"n", 1}, {"m", 2}}));
}

TEST(WorkingBounds, AreTakenInPartsWhereTheyAreWide) {
  const auto bound_of = [](int64_t max, int64_t value) {
    const std::vector<Variable> bounds = WorkingBounds({{"n", 1, max}}, {{"n", value}});
    EXPECT_EQ(bounds[0].min, 1);
    return bounds[0].max;
  };
  EXPECT_EQ(bound_of(1024, 1), 1024);
  EXPECT_EQ(bound_of(2000, 1), 1024);
  EXPECT_EQ(bound_of(2000, 1025), 2000);
  EXPECT_EQ(bound_of(1 << 20, 1), 1024);
  EXPECT_EQ(bound_of(1 << 20, 1025), 1 << 11);
  EXPECT_EQ(bound_of(1 << 20, 1 << 14), 1 << 14);
  EXPECT_EQ(bound_of(1 << 20, 1 << 20), 1 << 20);
}

TEST(ShortName, IsTheFirstLineCutBetweenCharacters) {
  EXPECT_EQ(ShortName("name\nsecond line"), "name");
  EXPECT_EQ(ShortName(std::string(100, 'a')), std::string(80, 'a'));
  EXPECT_EQ(ShortName(std::string(79, 'a') + "\u00e9"), std::string(79, 'a'));
}

class ProgramCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<ProgramCache> Make(int idle_max = 512) {
    return Make([] {}, idle_max);
  }
  // `at_compile` is called at the beginning of each compilation.
  std::unique_ptr<ProgramCache> Make(std::function<void()> at_compile, int idle_max = 512,
                                     int compile_threads = 8) {
    ProgramCache::Options options;
    options.threads = threads_;
    options.threads.threads = compile_threads;
    options.compile = [this, at_compile = std::move(at_compile)](
                          const auto& graph, const auto& target, const auto& compile_options) {
      ++compiled_;
      at_compile();
      auto program = kiln::testing::FakeCompile(graph, target, compile_options);
      if (program.ok() && refuse_schedules_) {
        compiler::CompiledKernel& kernel = program->kernels.emplace_back();
        kernel.image.name = kernel.image.code = "add";
        kernel.refused_schedule = "split 0 3";
        kernel.refusal = "element 7 of out2 gets another value";
      }
      return program;
    };
    options.metrics = &metrics_;
    options.clock = kiln::testing::StoppedClock();
    options.idle_programs_max = idle_max;
    options.tuned = [this](const std::string& kernel, const drivers::Target&, const std::string&,
                           SettingsChange change) -> std::optional<std::string> {
      if (tuned_) return tuned_(kernel);
      // The last one that is not newer.
      const auto after = settings_.upper_bound(change);
      if (after == settings_.begin()) return std::nullopt;
      return std::prev(after)->second;
    };
    options.last_settings_change = [this] {
      return settings_.empty() ? SettingsChange{1} : settings_.rbegin()->first;
    };
    return std::make_unique<ProgramCache>(std::move(options));
  }
  static absl::StatusOr<std::shared_ptr<Program>> Wait(
      const std::shared_ptr<ProgramFuture>& future) {
    absl::Notification done;
    if (future->AddWaiter([&] { done.Notify(); })) done.WaitForNotification();
    if (!future->result().ok()) return future->result().status();
    return (*future->result())->program;
  }
  absl::StatusOr<std::shared_ptr<Program>> Get(ProgramCache& cache, const std::string& key,
                                               int64_t count) {
    return Wait(
        cache.Get(std::make_shared<CopySource>(key, count), {}, device_, "name\nsecond line"));
  }

  metrics::Metrics metrics_{"test"};
  kiln::testing::FakeDevice* raw_ = new kiln::testing::FakeDevice("cpu:0", 1000);
  ManagedDevice device_{std::unique_ptr<drivers::Device>(raw_), 0, metrics_.ForDevice("cpu:0"),
                        SystemClock()};
  std::atomic<int> compiled_{0};
  bool refuse_schedules_ = false;
  std::function<std::optional<std::string>(const std::string& kernel)> tuned_;
  std::map<SettingsChange, std::string> settings_;  // of all kernels, unless there is tuned_
  CompileThreads::Options threads_;
};

// No matter how many sessions the user opens.
TEST_F(ProgramCacheTest, OneUserWhoFillsTheQueueHoldsUpNobody) {
  threads_.waiting_of_one = 5;
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 16);
  const auto greedy = memory->NewAccount("user ann"), other = memory->NewAccount("user bob");
  std::vector<std::shared_ptr<memory::Account>> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(memory->NewAccount("a session", greedy));
  absl::Notification go;
  std::atomic<bool> is_short{false};
  std::atomic<int> held{0};
  auto cache = Make(
      [&] {
        if (is_short.exchange(false)) return;
        ++held;
        go.WaitForNotification();
      },
      /*idle_max=*/512, /*compile_threads=*/4);
  std::vector<std::shared_ptr<ProgramFuture>> futures;
  const auto ask = [&](int i, const std::shared_ptr<memory::Account>& account) {
    return cache->Get(std::make_shared<CopySource>(absl::StrCat("key", i), 4 + i), {}, device_, "",
                      account);
  };
  // Two begin eventually; as many as allowed wait.
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    futures.push_back(ask(i, sessions[i % 4]));
    if (!futures.back()->resolved()) continue;
    ++refused;
    const absl::Status status = futures.back()->result().status();
    EXPECT_EQ(errors::Reason(status), "TOO_MANY_COMPILES") << status;
    EXPECT_TRUE(absl::IsResourceExhausted(status));
  }
  EXPECT_GE(refused, 20 - 7);
  EXPECT_LE(refused, 20 - 5);
  EXPECT_TRUE(Eventually([&] { return held == 2; }));
  is_short = true;
  const auto of_other = memory->NewAccount("a session", other);
  EXPECT_TRUE(Wait(ask(100, of_other)).ok());
  EXPECT_EQ(compiled_, 3) << "two of one user, and the other's";
  // It does not wait in the other user's queue either if both want the same program.
  int waiting = 19;
  while (futures[waiting]->resolved()) --waiting;
  is_short = true;
  EXPECT_TRUE(Wait(ask(waiting, of_other)).ok());
  EXPECT_EQ(compiled_, 4);
  go.Notify();
  for (const auto& future : futures) Wait(future).IgnoreError();
  // A refused request is tried again when it is repeated.
  EXPECT_TRUE(Wait(ask(19, sessions[0])).ok());
}

TEST_F(ProgramCacheTest, RefusedSchedulesAreCountedAndRun) {
  refuse_schedules_ = true;
  auto cache = Make();
  ASSERT_TRUE(Get(*cache, "a", 4).ok());
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_refused_schedules_total 1\n"));
}

// The task of a user who waits for the same program may run long after the program is ready.
TEST_F(ProgramCacheTest, WhatIsCompiledIsNotHeldInTheQueuesOfOthers) {
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 16);
  const auto ann = memory->NewAccount("session s1", memory->NewAccount("user ann"));
  const auto bob = memory->NewAccount("session s2", memory->NewAccount("user bob"));
  std::atomic<int> begun{0};
  absl::Notification anns, bobs;
  auto cache = Make([&] { (++begun == 3 ? anns : bobs).WaitForNotification(); },
                    /*idle_max=*/512, /*compile_threads=*/4);
  const auto ask = [&](int64_t count, const std::shared_ptr<memory::Account>& account) {
    auto source = std::make_shared<CopySource>(absl::StrCat("key", count), count);
    return std::pair(cache->Get(source, {}, device_, "", account),
                     std::weak_ptr<const GraphSource>(source));
  };
  const auto first = ask(1, bob), second = ask(2, bob);
  EXPECT_TRUE(Eventually([&] { return begun == 2; }));
  auto wanted = ask(3, ann);
  EXPECT_TRUE(Eventually([&] { return begun == 3; }));
  EXPECT_EQ(ask(3, bob).first, wanted.first);
  anns.Notify();
  EXPECT_TRUE(Wait(wanted.first).ok());
  // The thread that compiled it may not have released it yet.
  EXPECT_TRUE(Eventually([&] { return wanted.second.expired(); }));
  bobs.Notify();
  EXPECT_TRUE(Wait(first.first).ok());
  EXPECT_TRUE(Wait(second.first).ok());
}

// The first client has no memory for the program; another one that waits for it has.
TEST_F(ProgramCacheTest, AnotherSessionPaysForWhatOneCannotHold) {
  const auto memory = std::make_shared<memory::HostMemory>(64 << 20, 4);
  const auto poor = memory->NewAccount("session s1"), rich = memory->NewAccount("session s2");
  auto held = poor->Open(memory::Use::kBlobs);
  absl::Notification begun, asked;
  auto cache = Make([&] {
    if (begun.HasBeenNotified()) return;
    begun.Notify();
    asked.WaitForNotification();
    held.ForceResize(60 << 20);
  });
  const auto ask = [&](const std::string& key, const std::shared_ptr<memory::Account>& account) {
    return cache->Get(std::make_shared<CopySource>(key, 4), {}, device_, "", account);
  };
  const auto first = ask("a", poor);
  begun.WaitForNotification();
  const auto same_source = ask("a", rich), same_graph = ask("b", rich);
  asked.Notify();
  EXPECT_TRUE(Wait(same_source).ok()) << same_source->result().status();
  EXPECT_TRUE(Wait(same_graph).ok()) << same_graph->result().status();
  EXPECT_TRUE(Wait(first).ok());
  EXPECT_TRUE(Wait(ask("c", poor)).ok()) << "it is there";
  EXPECT_EQ(cache->size(), 1);
}

TEST_F(ProgramCacheTest, SameGraphUnderTwoKeysCompilesOnce) {
  auto cache = Make();
  const auto first = Get(*cache, "a", 4);
  const auto second = Get(*cache, "b", 4);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ((*first)->description().name, "name");
  EXPECT_EQ(*cache->Find((*first)->description().digest.substr(0, 5)), *first);
  Get(*cache, "c", 5).IgnoreError();
  EXPECT_EQ(cache->Find("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Find("xyz").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ProgramCacheTest, AProgramKnowsWhoAskedForItUnderWhichNameAndWhoRanIt) {
  auto cache = Make();
  const auto program = *Get(*cache, "a", 4);
  EXPECT_FALSE(program->UseBy("ann"));
  const auto future = cache->Get(std::make_shared<CopySource>("a", 4), {}, device_, "");
  NoteUser(future, "ann", "step");
  NoteUser(future, "bob", "bobs");
  NoteUser(future, "ann", "train");
  EXPECT_EQ(program->UseBy("ann")->name, "train");
  EXPECT_EQ(program->UseBy("bob")->name, "bobs");
  // The runs are counted for each user separately, no matter how often they ask.
  program->Record("ann", {0.5}, {});
  program->Record("bob", {0.25}, {});
  NoteUser(future, "ann", "train");
  program->Record("ann", {0.5}, {});
  EXPECT_EQ(program->UseBy("ann")->runs, 2);
  EXPECT_EQ(program->UseBy("ann")->device_seconds, 1);
  EXPECT_EQ(program->UseBy("bob")->runs, 1);
  EXPECT_EQ(program->runs(), 3);
  // The user who asked least recently is forgotten first.
  for (int i = 0; i < 63; ++i) NoteUser(future, absl::StrCat("user", i), "");
  EXPECT_FALSE(program->UseBy("bob"));
  EXPECT_EQ(program->UseBy("ann")->name, "train");
  NoteUser(future, "one more", "");
  EXPECT_FALSE(program->UseBy("ann"));
}

TEST_F(ProgramCacheTest, OneProgramServesAllValues) {
  auto cache = Make();
  const auto source = std::make_shared<VariableCopySource>(1);
  std::shared_ptr<Program> program;
  for (int64_t n = 1; n <= 8; ++n) {
    const auto future = cache->Get(source, {{"n", n}}, device_, "");
    ASSERT_TRUE(Wait(future).ok());
    const BoundProgram& bound = **future->result();
    if (n == 1) program = bound.program;
    EXPECT_EQ(bound.program, program);
    EXPECT_EQ(bound.signature.inputs[0]->shape, (std::vector<int64_t>{n}));
    EXPECT_EQ(bound.input_bytes(0), 8 * 4);
    EXPECT_EQ(bound.result_bytes(0), 8 * 4);
    ASSERT_NE(bound.variables, nullptr);
    EXPECT_EQ(*static_cast<const int64_t*>(bound.variables->buffer()->host_pointer()), n);
    EXPECT_EQ(bound.widen[0] != nullptr, n < 8);
  }
  EXPECT_EQ(compiled_, 1);
  EXPECT_EQ(cache->List().size(), 1);
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_shared_bindings_total 8"));
}

TEST_F(ProgramCacheTest, ValuesAreBoundAheadOnceTheyCountUp) {
  auto cache = Make([] {}, /*idle_max=*/512, /*compile_threads=*/1);
  const auto source = std::make_shared<VariableCopySource>(1);
  const auto ask = [&](int64_t n) {
    ASSERT_TRUE(Wait(cache->Get(source, {{"n", n}}, device_, "")).ok());
    absl::Notification idle;  // after the work of the only thread
    cache->Check(source, nullptr, [&](const absl::Status&) { idle.Notify(); });
    idle.WaitForNotification();
  };
  ask(3);
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_shared_bindings_total 1\n"));
  ask(4);
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_shared_bindings_total 6\n"));
  const auto ahead = cache->Get(source, {{"n", 8}}, device_, "");
  ASSERT_TRUE(ahead->resolved());
  EXPECT_EQ((*ahead->result())->signature.inputs[0]->shape, (std::vector<int64_t>{8}));
  EXPECT_EQ(compiled_, 1);
}

TEST_F(ProgramCacheTest, NewDefinitionsGetTheSettingsThatWereFoundSince) {
  auto cache = Make();
  const auto source = std::make_shared<CopySource>("a", 4);
  const auto held = cache->Get(source, {}, device_, "");
  const auto old = *Wait(held);
  const auto variable = std::make_shared<VariableCopySource>(1);
  const auto old_variable = *Wait(cache->Get(variable, {{"n", 1}}, device_, ""));
  cache->DropOutdated();
  EXPECT_EQ(*Get(*cache, "a", 4), old);
  EXPECT_EQ(compiled_, 2);
  tuned_ = [](const std::string&) { return "better"; };
  // A stored setting alone changes nothing.
  EXPECT_EQ(*Get(*cache, "a", 4), old);
  cache->DropOutdated();
  const auto anew = *Get(*cache, "a", 4);
  EXPECT_NE(anew, old);
  EXPECT_EQ(*Get(*cache, "b", 4), anew);
  EXPECT_EQ(anew->compiled().kernels[0].setting, "better");
  const auto anew_variable = *Wait(cache->Get(variable, {{"n", 1}}, device_, ""));
  EXPECT_NE(anew_variable, old_variable);
  EXPECT_EQ(*Wait(cache->Get(variable, {{"n", 2}}, device_, "")), anew_variable);
  EXPECT_EQ(compiled_, 4);
  // The sessions of the old program keep it.
  EXPECT_EQ((*held->result())->program, old);
  EXPECT_EQ(old->compiled().kernels[0].setting, "");
  EXPECT_EQ(cache->List().size(), 4);
  cache->DropOutdated();
  EXPECT_EQ(*Get(*cache, "a", 4), anew);
  EXPECT_EQ(compiled_, 4);
}

TEST_F(ProgramCacheTest, EarlierSettingsGiveTheProgramOfThatTime) {
  auto cache = Make();
  const auto get = [&](const std::string& key, SettingsChange settings) {
    return *Wait(cache->Get(std::make_shared<CopySource>(key, 4), {}, device_, "", nullptr,
                            Admission::kAsked, nullptr, settings));
  };
  const auto setting_of = [](const std::shared_ptr<Program>& program) {
    return program->compiled().kernels[0].setting;
  };
  EXPECT_EQ(cache->settings(), 1);
  const auto first = get("a", kNewestSettings);
  settings_ = {{5, "b"}};
  // Nothing changes before the cache has been told.
  EXPECT_EQ(get("a", kNewestSettings), first);
  cache->DropOutdated();
  EXPECT_EQ(cache->settings(), 5);
  const auto second = get("a", kNewestSettings);
  EXPECT_EQ(setting_of(second), "b");
  const auto again = get("a", 1);
  EXPECT_EQ(setting_of(again), "");
  EXPECT_EQ(get("a", 1), again);
  EXPECT_EQ(get("a", 5), second);
  // The same graph, written differently.
  EXPECT_EQ(setting_of(get("other", 1)), "");
  EXPECT_EQ(get("other", 5), second);
  settings_[9] = "c";
  cache->DropOutdated();
  EXPECT_EQ(setting_of(get("a", kNewestSettings)), "c");
  EXPECT_EQ(setting_of(get("a", 5)), "b");
  EXPECT_EQ(get("a", 1), again);
  // A later change than all that are known, since the store was lost.
  EXPECT_EQ(setting_of(get("a", 1000)), "c");
}

TEST_F(ProgramCacheTest, AChangeOfOtherKernelsKeepsThePrograms) {
  auto cache = Make();
  settings_ = {{5, "b"}};
  cache->DropOutdated();
  const auto first = *Get(*cache, "a", 4);
  settings_[9] = "b";
  cache->DropOutdated();
  EXPECT_EQ(*Get(*cache, "a", 4), first);
  for (const SettingsChange change : {5, 9}) {
    EXPECT_EQ(*Wait(cache->Get(std::make_shared<CopySource>("a", 4), {}, device_, "", nullptr,
                               Admission::kAsked, nullptr, change)),
              first);
  }
  EXPECT_EQ(compiled_, 1);
}

TEST_F(ProgramCacheTest, AVariablesProgramsOfEarlierSettingsAreOthers) {
  auto cache = Make();
  const auto variable = std::make_shared<VariableCopySource>(1);
  const auto get = [&](int64_t n, SettingsChange settings) {
    return *Wait(cache->Get(variable, {{"n", n}}, device_, "", nullptr, Admission::kAsked, nullptr,
                            settings));
  };
  const auto first = get(1, 1);
  settings_ = {{5, "b"}};
  cache->DropOutdated();
  const auto second = get(1, 5);
  EXPECT_NE(second, first);
  const auto old = get(2, 1);
  EXPECT_EQ(old->compiled().kernels[0].setting, "");
  EXPECT_EQ(get(3, 1), old);
  EXPECT_EQ(get(2, 5), second);
}

TEST_F(ProgramCacheTest, AProgramThatWasCompilingWhenASettingWasFoundIsNotKept) {
  auto cache = Make();
  std::string setting;
  tuned_ = [&](const std::string&) {
    const std::string before = setting;
    if (before.empty()) {
      setting = "better";
      cache->DropOutdated();
    }
    return before;
  };
  const auto old = *Get(*cache, "a", 4);
  EXPECT_EQ(old->compiled().kernels[0].setting, "");
  const auto anew = *Get(*cache, "a", 4);
  EXPECT_EQ(anew->compiled().kernels[0].setting, "better");
}

// Settings that change while the result is compared with those before must not make the next
// definition compile what is there already.
TEST_F(ProgramCacheTest, AChangeWhileAProgramIsComparedWithAnotherOneIsNotMissed) {
  auto cache = Make();
  int asked = 0;
  tuned_ = [&](const std::string&) -> std::optional<std::string> {
    // Asked by the compiler, and then by the comparison that the first change causes.
    if (++asked <= 2) {
      settings_[asked * 5] = "";
      cache->DropOutdated();
    }
    return std::nullopt;
  };
  const auto future = cache->Get(std::make_shared<CopySource>("a", 4), {}, device_, "");
  std::shared_ptr<ProgramFuture> again;
  absl::Notification done;
  const auto ask_again = [&] {
    again = cache->Get(std::make_shared<CopySource>("a", 4), {}, device_, "");
    done.Notify();
  };
  if (future->AddWaiter(ask_again)) {
    done.WaitForNotification();
  } else {
    ask_again();
  }
  EXPECT_EQ(again, future);
  EXPECT_EQ(*Get(*cache, "a", 4), (*future->result())->program);
  EXPECT_EQ(compiled_, 1);
  EXPECT_GE(asked, 3);
}

TEST_F(ProgramCacheTest, WhatHasNoOneProgramGetsOneForEveryValue) {
  auto cache = Make();
  const auto source = std::make_shared<VariableCopySource>(3);
  for (int64_t n = 1; n <= 3; ++n) {
    const auto future = cache->Get(source, {{"n", n}}, device_, "");
    ASSERT_TRUE(Wait(future).ok());
    EXPECT_EQ((*future->result())->variables, nullptr);
    EXPECT_EQ((*future->result())->signature.outputs[0]->shape, (std::vector<int64_t>{n * n * n}));
  }
  EXPECT_EQ(compiled_, 3);
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_own_bindings_total 3"));
}

TEST_F(ProgramCacheTest, OneProgramIsTriedAgainOnceThereIsMemory) {
  auto cache = Make();
  const auto source = std::make_shared<ShortOfMemory>();
  ASSERT_TRUE(Wait(cache->Get(source, {{"n", 1}}, device_, "")).ok());
  EXPECT_FALSE(Wait(cache->Get(source, {{"n", 2}}, device_, "")).ok());
  source->Free();
  for (int64_t n = 2; n <= 3; ++n)
    ASSERT_TRUE(Wait(cache->Get(source, {{"n", n}}, device_, "")).ok());
  EXPECT_THAT(metrics_.Text(), HasSubstr("kiln_own_bindings_total 1"));
}

TEST_F(ProgramCacheTest, FailuresAreNotKept) {
  auto cache = Make();
  EXPECT_EQ(Get(*cache, "a", -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Get(*cache, "b", 1000).status().message()),
              HasSubstr("4000 bytes, but cpu:0 has 1000"));
  EXPECT_EQ(cache->size(), 0);
  EXPECT_TRUE(Get(*cache, "a", 1).ok());
}

TEST_F(ProgramCacheTest, IdleProgramsGoOldestFirst) {
  auto cache = Make(/*idle_max=*/2);
  auto held = cache->Get(std::make_shared<CopySource>("1", 1), {}, device_, "");
  ASSERT_TRUE(Wait(held).ok());
  int64_t count = 2;
  // A compiling thread may keep its last request for a while, so the sixth may be needed to evict
  // the others.
  const auto get_next = [&] {
    EXPECT_TRUE(Get(*cache, std::to_string(count), count).ok());
    ++count;
  };
  while (count <= 5) get_next();
  EXPECT_TRUE(Eventually([&] {
    if (cache->size() > 3) get_next();
    return cache->size() <= 3;
  }));
  EXPECT_EQ(compiled_, count - 1);
  // A program that is still named is never evicted.
  EXPECT_TRUE(Get(*cache, "1", 1).ok());
  EXPECT_EQ(compiled_, count - 1);
}

TEST_F(ProgramCacheTest, AProgramStaysAsLongAsOneOfItsSources) {
  auto cache = Make(/*idle_max=*/2);
  ASSERT_TRUE(Get(*cache, "idle", 1).ok());
  auto held = cache->Get(std::make_shared<CopySource>("held", 1), {}, device_, "");
  ASSERT_TRUE(Wait(held).ok());
  const std::string digest = (*held->result())->program->description().digest;
  for (int64_t count = 2; count <= 20; ++count)
    ASSERT_TRUE(Get(*cache, std::to_string(count), count).ok());
  EXPECT_EQ(cache->Get(std::make_shared<CopySource>("held", 1), {}, device_, ""), held);
  ASSERT_TRUE(cache->Find(digest).ok());
  EXPECT_EQ(*cache->Find(digest), (*held->result())->program);
  EXPECT_TRUE(Get(*cache, "idle", 1).ok());
  EXPECT_EQ(compiled_, 20);
  held.reset();
  // A compiling thread may keep its last request for a while.
  int64_t count = 21;
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(Get(*cache, std::to_string(count), count).ok());
    ++count;
    return !cache->Find(digest).ok();
  }));
  EXPECT_EQ(cache->Find(digest).status().code(), absl::StatusCode::kNotFound);
}

// Every answer is right, no matter which programs are evicted meanwhile.
TEST_F(ProgramCacheTest, ManyMayAskWhileIdleProgramsGo) {
  auto cache = Make(/*idle_max=*/2);
  const auto variable = std::make_shared<VariableCopySource>(1);
  const auto work = [&](int client) {
    for (int64_t i = 0; i < 100; ++i) {
      const int64_t count = 1 + i % 5;
      const auto own = Get(*cache, absl::StrCat(client % 2, "/", count), count);
      ASSERT_TRUE(own.ok()) << own.status();
      EXPECT_EQ((*own)->signature().inputs[0]->shape, (std::vector<int64_t>{count}));
      const int64_t n = 1 + i % 8;
      const auto bound = cache->Get(variable, {{"n", n}}, device_, "");
      ASSERT_TRUE(Wait(bound).ok()) << bound->result().status();
      EXPECT_EQ((*bound->result())->signature.inputs[0]->shape, (std::vector<int64_t>{n}));
      if (i % 10 == 0) cache->Reclaim(int64_t{1} << 30);
    }
  };
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) clients.emplace_back(work, client);
  for (std::thread& client : clients) client.join();
}

TEST_F(ProgramCacheTest, StoppedCacheCompilesNothing) {
  auto cache = Make();
  cache->StopCompiling();
  const absl::Status stopped = Get(*cache, "a", 1).status();
  EXPECT_EQ(stopped.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(graph::ErrorDetail(stopped, "reason"), "SHUTTING_DOWN");
}

TEST_F(ProgramCacheTest, FirstRunsAreSampledThenFew) {
  auto cache = Make();
  const auto program = Get(*cache, "a", 1);
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE((*program)->TakeSample());
  EXPECT_TRUE((*program)->TakeSample());
  int sampled = 0;
  for (int i = 0; i < 64 * 100; ++i) sampled += (*program)->TakeSample() ? 1 : 0;
  EXPECT_LE(sampled, 3);
}

TEST_F(ProgramCacheTest, PredictionFollowsMeasurement) {
  auto cache = Make();
  const auto program = Get(*cache, "a", 1);
  ASSERT_TRUE(program.ok());
  // Before that, it is the work at the device's rates, one launch for its kernel and one for the
  // list.
  EXPECT_GE((*program)->predicted_seconds(), 2 * device_.info().target.rates.launch_seconds);
  EXPECT_FALSE((*program)->Record("ann", {0.5}, {{0.5}}));
  EXPECT_DOUBLE_EQ((*program)->predicted_seconds(), 0.5);
  for (int i = 0; i < 100; ++i) (*program)->Record("ann", {0.1}, {});
  EXPECT_NEAR((*program)->predicted_seconds(), 0.1, 0.001);
  EXPECT_EQ((*program)->runs(), 101);
  EXPECT_EQ((*program)->kernel_times()[0].samples, 1);
  EXPECT_DOUBLE_EQ((*program)->kernel_times()[0].lowest_seconds, 0.5);
}

TEST_F(ProgramCacheTest, InputsAreChecked) {
  auto cache = Make();
  const auto program = Get(*cache, "a", 2);
  ASSERT_TRUE(program.ok());
  const Signature& signature = (*program)->signature();
  const auto other =
      std::make_shared<buffers::TensorType>(buffers::TensorType{ir::DType::kFloat32, {3}});
  auto value = device_.pool()->Allocate(other, nullptr);
  EXPECT_FALSE(CheckInputs(signature, {}).ok());
  EXPECT_THAT(std::string(CheckInputs(signature, {*value}).message()),
              HasSubstr("input 0 must be float32[2]"));
}

TEST_F(ProgramCacheTest, ArenaGrowsAndIsShared) {
  const auto small = *device_.arenas().Reserve(100);
  EXPECT_EQ(*device_.arenas().Reserve(50), small);
  const auto large = *device_.arenas().Reserve(200);
  EXPECT_NE(large, small);
  EXPECT_EQ(*device_.arenas().Reserve(100), large);
  EXPECT_EQ(device_.arenas().Reserve(5000).status().code(), absl::StatusCode::kResourceExhausted);
}

// Two at once would not fit.
TEST_F(ProgramCacheTest, RunsThatBeginTogetherShareOneArena) {
  const int64_t bytes = device_.pool()->total_bytes() / 4 * 3;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> runs;
    for (int i = 0; i < 3; ++i)
      runs.emplace_back([&] { EXPECT_TRUE(device_.arenas().Reserve(bytes).ok()); });
    for (std::thread& run : runs) run.join();
    // The arena is freed for this, so the next round makes it again.
    auto all = device_.pool()->AllocateBytes(device_.pool()->total_bytes());
    ASSERT_TRUE(all.ok()) << all.status();
    device_.pool()->Free(*std::move(all));
  }
}

// A closed session leaves no memory that others cannot use.
TEST_F(ProgramCacheTest, IdleArenaGivesWay) {
  const int64_t limit = device_.pool()->total_bytes();
  const auto type =
      std::make_shared<buffers::TensorType>(buffers::TensorType{ir::DType::kInt8, {limit / 2 + 1}});
  auto arena = *device_.arenas().Reserve(limit / 2);
  EXPECT_TRUE(absl::IsResourceExhausted(device_.pool()->Allocate(type, nullptr).status()));
  EXPECT_EQ(*device_.arenas().Reserve(1), arena) << "a run uses it";
  arena.reset();
  EXPECT_TRUE(device_.pool()->Allocate(type, nullptr).ok());
  EXPECT_EQ(device_.pool()->used_bytes(), 0);
  EXPECT_TRUE(device_.arenas().Reserve(limit).ok());
}

TEST(Explain, QueueHasOneLineForEachCommand) {
  using Kind = compiler::Slot::Kind;
  compiler::CompiledProgram program;
  program.kernels.resize(1);
  program.kernels[0].image.name = "softmax_128";
  program.kernels[0].from_cache = true;
  program.slots = {{Kind::kInput, 0, 512},
                   {Kind::kOutput, 0, 512},
                   {Kind::kUpdate, 0, 512},
                   {Kind::kArena, 0, 64}};
  program.calls.push_back({0, {{0, 0, 512}, {3, 0, 64}, {1, 0, 512}}});
  program.copies.push_back({{1, 0, 512}, {2, 0, 512}});
  EXPECT_EQ(QueueText(program),
            "0: launch softmax_128(input 0 [0, 512), arena [0, 64), output 0 [0, 512))\n"
            "1: copy output 0 [0, 512) to update 0 [0, 512)\n");
  EXPECT_EQ(KernelsFromCache(program), 1);
}

}  // namespace
}  // namespace kiln::runtime
