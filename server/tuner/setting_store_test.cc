#include "server/tuner/setting_store.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/compiler.h"
#include "compiler/graph/text.h"
#include "compiler/search/knobs/setting.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/cache/testing/read_only_folder.h"

namespace kiln::tuner {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

drivers::Target Avx2Processor() {
  drivers::Target target;
  target.architecture = "x86-64";
  target.processor = "x86-64-v3";
  target.features = "+avx2,+fma,+f16c";
  target.limits.vector_bytes = 32;
  target.limits.compute_units = 2;
  target.capabilities.fma = true;
  return target;
}

TunedSetting SettingOf(const std::string& kernel, double seconds_after = 0.5) {
  return {.kernel = kernel + "\n",
          .hardware = Avx2Processor().HardwareKey(),
          .version = search::kSettingVersion,
          .setting = "setting 1\nstage 0 form=sum_lanes vectors=2\n",
          .seconds_before = 1,
          .seconds_after = seconds_after,
          .roofline_seconds = 0.25,
          .measured = absl::FromUnixSeconds(1'700'000'000),
          .width = 4};
}

class SettingStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "/kiln_settings_XXXXXX");
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  std::unique_ptr<SettingStore> Open(const std::string& folder = "a", int64_t entries_max = 1000,
                                     int64_t bytes_max = 1 << 20) {
    return std::make_unique<SettingStore>(SettingStore::Options{.folder = root_ + "/" + folder,
                                                                .entries_max = entries_max,
                                                                .bytes_max = bytes_max,
                                                                .now = [this] { return now_; }});
  }
  void Put(SettingStore& store, const TunedSetting& setting) {
    now_ += absl::Minutes(2);
    EXPECT_EQ(store.Put(setting), absl::OkStatus());
  }
  static std::optional<TunedSetting> Find(SettingStore& store, const std::string& kernel) {
    return store.Find(kernel + "\n", Avx2Processor().HardwareKey());
  }
  std::string path() const { return root_ + "/a/settings.sqlite"; }

  std::string root_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(SettingStoreTest, KeepsEverythingAcrossRestarts) {
  Put(*Open(), SettingOf("k"));
  auto store = Open();
  EXPECT_EQ(Find(*store, "k"), SettingOf("k"));
  EXPECT_EQ(store->SettingFor("k\n", Avx2Processor()), SettingOf("k").setting);
  EXPECT_EQ(Find(*store, "other"), std::nullopt);
  EXPECT_EQ(store->GetStatistics().entries, 1);
  EXPECT_EQ(store->GetStatistics().path, path());
}

TEST_F(SettingStoreTest, KernelHardwareAndVersionAreTheKey) {
  auto store = Open();
  Put(*store, SettingOf("k"));
  drivers::Target other = Avx2Processor();
  other.limits.compute_units = 64;
  EXPECT_EQ(store->SettingFor("k\n", other), std::nullopt);
  TunedSetting later = SettingOf("k");
  later.version = search::kSettingVersion + 1;
  later.setting = "setting 2\n";
  Put(*store, later);
  EXPECT_EQ(Find(*store, "k"), SettingOf("k"));
  EXPECT_EQ(store->GetStatistics().entries, 2);
  // The costs are the compiler's, and another version may have others.
  other = Avx2Processor();
  other.costs = drivers::kGpuCosts;
  EXPECT_EQ(store->SettingFor("k\n", other), SettingOf("k").setting);
}

TEST_F(SettingStoreTest, AnOwnersSettingIsForThatUserOnly) {
  auto store = Open();
  const drivers::Target target = Avx2Processor();
  TunedSetting anns = SettingOf("k");
  anns.hardware = StoredHardware(target.HardwareKey(), "ann");
  Put(*store, anns);
  EXPECT_EQ(store->Find("k\n", target.HardwareKey(), "ann"), anns);
  EXPECT_FALSE(store->Find("k\n", target.HardwareKey(), "bob"));
  EXPECT_FALSE(Find(*store, "k"));
  // One without an owner is for all who have none of their own.
  TunedSetting common = SettingOf("k");
  common.setting = "setting 1\nstage 0 form=scalar\n";
  Put(*store, common);
  EXPECT_EQ(store->SettingFor("k\n", target, "ann"), anns.setting);
  EXPECT_EQ(store->SettingFor("k\n", target, "bob"), common.setting);
  EXPECT_EQ(store->SettingFor("k\n", target), common.setting);
}

TEST_F(SettingStoreTest, ALaterResultReplacesAnEarlierOne) {
  auto store = Open();
  Put(*store, SettingOf("k", 0.5));
  Put(*store, SettingOf("k", 0.75));
  EXPECT_EQ(Find(*store, "k")->seconds_after, 0.75);
  EXPECT_EQ(store->GetStatistics().entries, 1);
}

TEST_F(SettingStoreTest, AKernelForWhichNothingWasFasterHasNoSettingButAnEntry) {
  auto store = Open();
  TunedSetting none = SettingOf("k");
  none.setting = "";
  Put(*store, none);
  EXPECT_EQ(store->SettingFor("k\n", Avx2Processor()), std::nullopt);
  EXPECT_EQ(Find(*store, "k"), none);
}

TEST_F(SettingStoreTest, RefusesWhatCheckRefuses) {
  EXPECT_TRUE(absl::IsInvalidArgument(Open()->Put({})));
  EXPECT_EQ(Open()->GetStatistics().entries, 0);
}

TEST_F(SettingStoreTest, EvictsTheLeastRecentlyUsedSetting) {
  auto store = Open("a", /*entries_max=*/10);
  for (int i = 0; i < 10; ++i) Put(*store, SettingOf(absl::StrCat("k", i)));
  now_ += absl::Minutes(2);
  EXPECT_TRUE(Find(*store, "k0").has_value());
  Put(*store, SettingOf("k10"));
  EXPECT_TRUE(Find(*store, "k0").has_value());
  EXPECT_FALSE(Find(*store, "k1").has_value());
  EXPECT_TRUE(Find(*store, "k10").has_value());
  for (int i = 0; i < 50; ++i) {
    Put(*store, SettingOf(absl::StrCat("more", i)));
    EXPECT_LE(store->GetStatistics().entries, 10);
  }
}

TEST_F(SettingStoreTest, BytesAreBounded) {
  auto store = Open("a", /*entries_max=*/1000, /*bytes_max=*/20'000);
  for (int i = 0; i < 50; ++i) {
    Put(*store, SettingOf(absl::StrCat("k", i, std::string(1000, 'x'))));
    EXPECT_LE(store->GetStatistics().bytes, 20'000);
  }
  EXPECT_GT(store->GetStatistics().entries, 10);
  TunedSetting large = SettingOf(std::string(30'000, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(store->Put(large)));
  EXPECT_GT(store->GetStatistics().entries, 10);
}

TEST_F(SettingStoreTest, ExportAndImportGiveTheSameStore) {
  auto first = Open("a");
  for (int i = 0; i < 5; ++i) Put(*first, SettingOf(absl::StrCat("k", i)));
  TunedSetting elsewhere = SettingOf("k0");
  elsewhere.hardware = "another GPU \xff\n";
  Put(*first, elsewhere);
  const auto exported = first->Export();
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->settings, 6);
  const std::string& text = exported->text;
  auto second = Open("b");
  const auto imported = second->Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->added, 6);
  EXPECT_EQ(second->Export()->text, text);
  EXPECT_EQ(second->Find("k0\n", elsewhere.hardware), elsewhere);
  EXPECT_EQ(second->Import(text)->kept, 6);
  EXPECT_EQ(Open("b")->Export()->text, text);
}

TEST_F(SettingStoreTest, TheFasterOfTwoSettingsIsKept) {
  auto slow = Open("a"), fast = Open("b");
  Put(*slow, SettingOf("k", 0.5));
  Put(*fast, SettingOf("k", 0.25));
  const std::string slow_text = slow->Export()->text;
  EXPECT_EQ(slow->Import(fast->Export()->text)->replaced, 1);
  EXPECT_EQ(fast->Import(slow_text)->kept, 1);
  EXPECT_EQ(Find(*slow, "k")->seconds_after, 0.25);
  EXPECT_EQ(Find(*fast, "k")->seconds_after, 0.25);
}

TEST_F(SettingStoreTest, ATextWithAMistakeImportsNothing) {
  auto store = Open();
  Put(*store, SettingOf("k", 0.5));
  const std::string before = store->Export()->text;
  std::string text = PrintSettings({SettingOf("a"), SettingOf("b"), SettingOf("k", 0.1)});
  text = absl::StrReplaceAll(text, {{"end of 3", "end of 4"}});
  for (const std::string& garbage :
       {text, std::string("garbage"), std::string(), before + "more", std::string(1000, '\0')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store->Import(garbage).status()));
    EXPECT_EQ(store->Export()->text, before);
  }
}

TEST_F(SettingStoreTest, AnImportIsBounded) {
  std::vector<TunedSetting> settings;
  for (int i = 0; i < 100; ++i) settings.push_back(SettingOf(absl::StrCat("k", i)));
  auto store = Open("a", /*entries_max=*/10);
  const auto imported = store->Import(PrintSettings(settings));
  ASSERT_TRUE(imported.ok()) << imported.status();
  const int64_t kept = store->GetStatistics().entries;
  EXPECT_LE(kept, 10);
  EXPECT_GT(kept, 0);
  EXPECT_EQ(imported->added, kept);
  EXPECT_EQ(imported->dropped, 100 - kept);
}

TEST_F(SettingStoreTest, ADamagedOrForeignFileCostsOnlyTheEntries) {
  const auto expect_works = [this] {
    testing::internal::CaptureStderr();
    auto store = Open();
    EXPECT_EQ(Find(*store, "k"), std::nullopt);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("event=setting_store_damaged"));
    Put(*store, SettingOf("k"));
    EXPECT_EQ(Find(*store, "k"), SettingOf("k"));
    EXPECT_TRUE(fs::exists(path() + ".damaged"));
    store.reset();
    fs::remove_all(root_ + "/a");
    fs::create_directory(root_ + "/a");
    chmod((root_ + "/a").c_str(), 0700);
  };
  fs::create_directory(root_ + "/a");
  chmod((root_ + "/a").c_str(), 0700);
  std::ofstream(path()) << std::string(8192, 'z');
  expect_works();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &raw), SQLITE_OK);
  sqlite3_exec(raw, "CREATE TABLE settings(volume INT); PRAGMA user_version=1", nullptr, nullptr,
               nullptr);
  sqlite3_close(raw);
  expect_works();
}

// Each page in turn is overwritten: an entry is right or missing, and the store goes on.
TEST_F(SettingStoreTest, DamageWithinTheFileIsNoError) {
  auto store = Open();
  for (int i = 0; i < 20; ++i) Put(*store, SettingOf(absl::StrCat("k", i, std::string(900, 'x'))));
  store.reset();
  const auto size = static_cast<int64_t>(fs::file_size(path()));
  ASSERT_GT(size, 4 * 4096);
  fs::copy(root_ + "/a", root_ + "/whole");
  int found_entries = 0, missing_entries = 0;
  for (int64_t place = 0; place < size; place += 4096) {
    fs::remove_all(root_ + "/a");
    fs::copy(root_ + "/whole", root_ + "/a");
    chmod((root_ + "/a").c_str(), 0700);
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(place);
    file << std::string(4096, '\x55');
    file.close();
    store = Open();
    for (int i = 0; i < 20; ++i) {
      const std::string kernel = absl::StrCat("k", i, std::string(900, 'x'));
      const auto found = Find(*store, kernel);
      ++(found ? found_entries : missing_entries);
      EXPECT_TRUE(!found || *found == SettingOf(kernel));
    }
    store->Export().status().IgnoreError();
    // A damaged page may first be found here. The file is then moved aside.
    store->Put(SettingOf("after")).IgnoreError();
    EXPECT_EQ(store->Put(SettingOf("after")), absl::OkStatus()) << place;
    EXPECT_EQ(Find(*store, "after"), SettingOf("after")) << place;
  }
  EXPECT_GT(found_entries, 0);
  EXPECT_GT(missing_entries, 0);
}

TEST_F(SettingStoreTest, ARowWithAnotherKeyIsRejected) {
  Put(*Open(), SettingOf("k"));
  std::ofstream(root_ + "/a/settings.key") << std::string(32, 'k');
  testing::internal::CaptureStderr();
  EXPECT_EQ(Find(*Open(), "k"), std::nullopt);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("event=setting_store_rejected"));
}

TEST_F(SettingStoreTest, AReadOnlyStoreIsUsed) {
  Put(*Open(), SettingOf("k"));
  const int status = cache::InReadOnlyFolder(root_ + "/a", [this] {
    auto store = Open();
    const bool is_used = Find(*store, "k") == SettingOf("k") && store->Export().ok();
    const bool is_left = absl::IsFailedPrecondition(store->Put(SettingOf("other"))) &&
                         store->GetStatistics().entries == 1;
    return is_used ? (is_left ? 0 : 2) : 1;
  });
  if (status == cache::kMayNotMount) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(status, 0) << "1: it was not used; 2: it was changed";
  EXPECT_EQ(Find(*Open(), "k"), SettingOf("k"));
}

TEST_F(SettingStoreTest, WorksWithoutAFolder) {
  std::ofstream(root_ + "/file") << "x";
  auto store = Open("file");
  EXPECT_EQ(Find(*store, "k"), std::nullopt);
  EXPECT_TRUE(absl::IsUnavailable(store->Put(SettingOf("k"))));
  EXPECT_FALSE(store->Export().ok());
  EXPECT_TRUE(absl::IsUnavailable(store->Import(PrintSettings({SettingOf("k")})).status()));
}

// One kernel: the sums of rows.
compiler::CompiledKernel CompileSums(const drivers::Target& target, SettingStore* store) {
  const auto graph = graph::Parse(
      "input 0 float32[64,1000]\n%0 = input float32[64,1000] index=0\n"
      "%1 = reduce_sum float32[64,1] %0 axes=[1]\noutput %1\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  compiler::Options options;
  if (store != nullptr) {
    options.tuned = [store](const std::string& kernel, const drivers::Target& asked) {
      return store->SettingFor(kernel, asked);
    };
  }
  auto program = compiler::Compile(*graph, target, options);
  EXPECT_TRUE(program.ok() && program->kernels.size() == 1) << program.status();
  return program.ok() ? std::move(program->kernels[0]) : compiler::CompiledKernel();
}

TEST_F(SettingStoreTest, AnImportedSettingGivesIdenticalMachineCode) {
  const drivers::Target target = Avx2Processor();
  const compiler::CompiledKernel untuned = CompileSums(target, nullptr);
  TunedSetting setting = SettingOf("");
  setting.kernel = untuned.ir;
  auto first = Open("a");
  Put(*first, setting);
  const compiler::CompiledKernel tuned = CompileSums(target, first.get());
  EXPECT_EQ(tuned.setting, setting.setting);
  EXPECT_EQ(tuned.setting_refusal, "");
  EXPECT_NE(tuned.image.code, untuned.image.code);
  auto second = Open("b");
  ASSERT_TRUE(second->Import(first->Export()->text).ok());
  EXPECT_EQ(CompileSums(target, second.get()).image.Serialize(), tuned.image.Serialize());
}

}  // namespace
}  // namespace kiln::tuner
