#include "server/tuner/setting_store.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
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

TEST_F(SettingStoreTest, AnImportTakesNoPlaceOfSettingsThatAreThere) {
  auto store = Open("a", /*entries_max=*/10);
  for (int i = 0; i < 4; ++i) Put(*store, SettingOf(absl::StrCat("own", i), 0.5));
  now_ += absl::Hours(1);
  std::vector<TunedSetting> settings = {SettingOf("own0", 0.1)};
  for (int i = 0; i < 100; ++i) settings.push_back(SettingOf(absl::StrCat("foreign", i)));
  const auto imported = store->Import(PrintSettings(settings));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->replaced, 1);
  EXPECT_EQ(imported->added, 6);
  EXPECT_EQ(imported->dropped, 94);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Find(*store, absl::StrCat("own", i)).has_value()) << i;
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

TEST_F(SettingStoreTest, KeepsTheRatesOfEachKindOfHardware) {
  const DeviceRates rates{.threads = 3, .launch_seconds = 1e-6};
  Put(*Open(), SettingOf("k"));
  ASSERT_TRUE(Open()->PutRates("fast", rates).ok());
  EXPECT_EQ(Open()->FindRates("fast"), rates);
  EXPECT_EQ(Open()->FindRates("other"), std::nullopt);
  // They are no setting.
  EXPECT_EQ(Open()->Export()->settings, 1);
}

TEST_F(SettingStoreTest, EarlierSettingsCanBeAskedFor) {
  auto store = Open();
  const drivers::Target target = Avx2Processor();
  EXPECT_EQ(store->last_change(), 1);
  std::vector<uint64_t> changes;
  const auto put = [&](const std::string& setting) {
    TunedSetting tuned = SettingOf("k");
    tuned.setting = setting;
    Put(*store, tuned);
    changes.push_back(store->last_change());
  };
  put("a\n");
  put("b\n");
  Put(*store, SettingOf("other"));
  put("b\n");  // only its times have changed
  put("");
  put("c\n");
  const auto expect_all = [&] {
    EXPECT_EQ(store->SettingAt("k\n", target, "", 1), std::nullopt);
    EXPECT_EQ(store->SettingAt("k\n", target, "", changes[0]), "a\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "", changes[1]), "b\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "", changes[2]), "b\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "", changes[3]), std::nullopt);
    EXPECT_EQ(store->SettingAt("k\n", target, "", changes[4]), "c\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "", changes[4] + 99), "c\n");
    EXPECT_EQ(store->SettingAt("none\n", target, "", changes[4]), std::nullopt);
  };
  expect_all();
  store = Open();
  EXPECT_EQ(store->last_change(), changes.back());
  expect_all();
  EXPECT_EQ(store->Export()->settings, 2);
}

TEST_F(SettingStoreTest, AnOwnersEarlierSettingsAreFollowedByThoseWithoutAnOwner) {
  auto store = Open();
  const drivers::Target target = Avx2Processor();
  const auto put = [&](const std::string& owner, const std::string& setting) {
    TunedSetting tuned = SettingOf("k");
    tuned.hardware = StoredHardware(target.HardwareKey(), owner);
    tuned.setting = setting;
    Put(*store, tuned);
    return store->last_change();
  };
  const uint64_t common = put("", "a\n");
  // Nothing changes for the owner.
  EXPECT_EQ(put("ann", "a\n"), common);
  const uint64_t others = put("", "b\n");
  const uint64_t own = put("ann", "c\n");
  // The heuristic's is better for this owner, which is a change.
  const uint64_t heuristics = put("bob", "");
  EXPECT_GT(heuristics, own);
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_EQ(store->SettingAt("k\n", target, "ann", 1), std::nullopt);
    EXPECT_EQ(store->SettingAt("k\n", target, "ann", common), "a\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "ann", others), "a\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "ann", own), "c\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "bob", common), "a\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "bob", own), "b\n");
    EXPECT_EQ(store->SettingAt("k\n", target, "bob", heuristics), std::nullopt);
    EXPECT_EQ(store->SettingAt("k\n", target, "", heuristics), "b\n");
    store = Open();
  }
}

TEST_F(SettingStoreTest, TheNearestSettingIsOfNoOtherOwner) {
  auto store = Open();
  const std::string hardware = Avx2Processor().HardwareKey();
  const auto kernel = [](int elements) {
    return absl::StrCat("buffer b0 float32[", elements, "] read\nbuffer b1 float32[", elements,
                        "] write\nstage r0:", elements, "\n  b1[r0] = exp2(b0[r0])\n");
  };
  const auto put = [&](const std::string& owner, int elements) {
    TunedSetting tuned = SettingOf("");
    tuned.kernel = kernel(elements);
    tuned.hardware = StoredHardware(hardware, owner);
    tuned.setting = absl::StrCat(owner, elements, "\n");
    Put(*store, tuned);
  };
  put("", 800);
  put("ann", 400);
  EXPECT_EQ(store->NearestSetting(kernel(200), hardware, "ann"), "ann400\n");
  EXPECT_EQ(store->NearestSetting(kernel(900), hardware, "ann"), "800\n");
  EXPECT_EQ(store->NearestSetting(kernel(200), hardware, "bob"), "800\n");
  EXPECT_EQ(store->NearestSetting(kernel(200), hardware), "800\n");
}

TEST_F(SettingStoreTest, ShippedSettingsGiveWayToStoredOnes) {
  const drivers::Target target = Avx2Processor();
  TunedSetting shipped = SettingOf("k");
  shipped.hardware = target.HardwareKey();
  shipped.setting = "shipped\n";
  shipped.width = 0;
  TunedSetting other = shipped;
  other.version = search::kSettingVersion + 1;
  other.kernel = "old\n";
  SettingStore store({.folder = root_ + "/a",
                      .now = [] { return absl::UnixEpoch(); },
                      .shipped = {shipped, other}});
  EXPECT_EQ(store.SettingFor("k\n", target), "shipped\n");
  EXPECT_EQ(store.SettingFor("k\n", target, "ann"), "shipped\n");
  EXPECT_EQ(store.SettingFor("old\n", target), std::nullopt);
  EXPECT_EQ(store.SettingAt("k\n", target, "", store.last_change()), "shipped\n");
  EXPECT_EQ(store.Find("k\n", target.HardwareKey())->width, 0);
  EXPECT_EQ(store.Export()->settings, 0);
  EXPECT_EQ(store.GetStatistics().entries, 0);
  // A user's own, which the others do not have.
  const uint64_t before = store.last_change();
  TunedSetting anns = shipped;
  anns.hardware = StoredHardware(target.HardwareKey(), "ann");
  anns.setting = "anns\n";
  Put(store, anns);
  EXPECT_EQ(store.SettingFor("k\n", target, "ann"), "anns\n");
  EXPECT_EQ(store.SettingAt("k\n", target, "ann", before), "shipped\n");
  EXPECT_EQ(store.SettingFor("k\n", target, "bob"), "shipped\n");
  // Here, the heuristic's schedule is the fastest.
  TunedSetting own = shipped;
  own.setting = "";
  Put(store, own);
  EXPECT_EQ(store.SettingFor("k\n", target), std::nullopt);
  EXPECT_EQ(store.SettingAt("k\n", target, "", before), "shipped\n");
  EXPECT_EQ(store.SettingAt("k\n", target, "", store.last_change()), std::nullopt);
}

TEST_F(SettingStoreTest, TheSettingThatIsShippedIsNoChange) {
  TunedSetting shipped = SettingOf("k");
  shipped.hardware = Avx2Processor().HardwareKey();
  SettingStore store(
      {.folder = root_ + "/a", .now = [] { return absl::UnixEpoch(); }, .shipped = {shipped}});
  const uint64_t before = store.last_change();
  Put(store, shipped);
  EXPECT_EQ(store.last_change(), before);
}

TEST_F(SettingStoreTest, AShippedSettingIsANeighbour) {
  TunedSetting shipped = SettingOf("");
  shipped.kernel = "buffer b0 float32[8] write\nstage r0:8\n  b0[r0] = 1:float32\n";
  SettingStore store(
      {.folder = root_ + "/a", .now = [] { return absl::UnixEpoch(); }, .shipped = {shipped}});
  EXPECT_EQ(store.NearestSetting("buffer b0 float32[9] write\nstage r0:9\n  b0[r0] = 1:float32\n",
                                 shipped.hardware),
            shipped.setting);
}

TEST_F(SettingStoreTest, AsManyEarlierSettingsAreKeptAsAreAllowed) {
  auto store = Open();
  TunedSetting tuned = SettingOf("k");
  std::vector<uint64_t> changes;
  for (size_t i = 0; i < SettingStore::kEarlierSettingsMax + 3; ++i) {
    tuned.setting = absl::StrCat(i, "\n");
    Put(*store, tuned);
    changes.push_back(store->last_change());
  }
  EXPECT_EQ(store->SettingAt("k\n", Avx2Processor(), "", changes[1]), std::nullopt);
  EXPECT_EQ(store->SettingAt("k\n", Avx2Processor(), "", changes[2]), "2\n");
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
compiler::CompiledKernel CompileSums(const drivers::Target& target, SettingStore* store,
                                     compiler::KernelCache* cache = nullptr) {
  const auto graph = graph::Parse(
      "input 0 float32[64,1000]\n%0 = input float32[64,1000] index=0\n"
      "%1 = reduce_sum float32[64,1] %0 axes=[1]\noutput %1\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  compiler::Options options;
  options.cache = cache;
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

// Has the entries of a compiler of this version.
class CacheOfVersion : public compiler::KernelCache {
 public:
  explicit CacheOfVersion(std::string version) : version_(std::move(version)) {}
  std::optional<std::string> Get(const std::string& key) override {
    const auto found = entries.find(Renamed(key));
    if (found == entries.end()) return std::nullopt;
    return found->second;
  }
  void Put(const std::string& key, const std::string& value) override {
    entries[Renamed(key)] = value;
  }

  std::map<std::string, std::string> entries;

  // Another version's compiler uses the same entries.
  void SetVersion(std::string version) { version_ = std::move(version); }

 private:
  std::string Renamed(const std::string& key) const {
    const std::string own = compiler::Version();
    EXPECT_EQ(key.substr(0, own.size()), own);
    return version_ + key.substr(own.size());
  }

  std::string version_;
};

TEST_F(SettingStoreTest, AnImportedSettingGivesIdenticalEntriesOfTheKernelCache) {
  const drivers::Target target = Avx2Processor();
  TunedSetting setting = SettingOf("");
  setting.kernel = CompileSums(target, nullptr).ir;
  auto first = Open("a"), second = Open("b");
  Put(*first, setting);
  ASSERT_TRUE(second->Import(first->Export()->text).ok());
  CacheOfVersion one("1"), other("1");
  CompileSums(target, first.get(), &one);
  CompileSums(target, second.get(), &other);
  EXPECT_EQ(one.entries.size(), size_t{1});
  EXPECT_EQ(one.entries, other.entries);
}

TEST_F(SettingStoreTest, SettingsAreUsedAfterTheCompilerHasChanged) {
  const drivers::Target target = Avx2Processor();
  TunedSetting setting = SettingOf("");
  setting.kernel = CompileSums(target, nullptr).ir;
  CacheOfVersion cache("1");
  Put(*Open(), setting);
  const compiler::CompiledKernel before = CompileSums(target, Open().get(), &cache);
  EXPECT_TRUE(CompileSums(target, Open().get(), &cache).from_cache);
  // Its kernels are compiled again, with the settings that there are.
  cache.SetVersion("2");
  const compiler::CompiledKernel after = CompileSums(target, Open().get(), &cache);
  EXPECT_FALSE(after.from_cache);
  EXPECT_EQ(after.setting, setting.setting);
  EXPECT_EQ(after.setting_refusal, "");
  EXPECT_EQ(after.image.Serialize(), before.image.Serialize());
  EXPECT_EQ(cache.entries.size(), size_t{2});
}

}  // namespace
}  // namespace kiln::tuner
