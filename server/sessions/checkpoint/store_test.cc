// Saved sessions: descriptions, sealed files, the folder.
#include "server/sessions/checkpoint/store.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::sessions {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

Checkpoint CheckpointOf(int64_t number) {
  Checkpoint checkpoint;
  checkpoint.identity.number = number;
  checkpoint.identity.id = absl::StrCat("secret ", number);
  checkpoint.identity.name = absl::StrCat("s", number);
  checkpoint.identity.priority = fairness::Priority::kBatch;
  checkpoint.identity.lease = absl::Seconds(100);
  checkpoint.identity.opened = absl::FromUnixSeconds(5);
  checkpoint.user = "ann";
  checkpoint.device = "cpu:0";
  checkpoint.executed = 3;
  checkpoint.values.push_back(
      {.kind = Checkpoint::Value::Kind::kFailed, .error = absl::InternalError("it failed")});
  checkpoint.values.push_back({});
  auto origin = std::make_shared<ProgramOrigin>();
  origin->wire = "a graph";
  checkpoint.origins.push_back(origin);
  checkpoint.pending.push_back(
      {2, SavedRun{.origin = 0, .bindings = {{"n", -3}}, .inputs = {0}, .results = {1}}});
  checkpoint.pending.push_back({3, SavedRead{1}});
  checkpoint.answers.push_back({.sequence = 1, .error = absl::NotFoundError("nothing")});
  checkpoint.used_handles.InsertAll(1, 9);
  checkpoint.handles = {{4, 1}, {9, 0}};
  checkpoint.cancelled = {{2, 5}, {5, 7}};
  return checkpoint;
}

TEST(Checkpoint, ComesBackAsItWas) {
  const Checkpoint checkpoint = CheckpointOf(7);
  const auto again = Decode(Encode(checkpoint));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->identity.id, "secret 7");
  EXPECT_EQ(again->identity.priority, fairness::Priority::kBatch);
  EXPECT_EQ(again->identity.opened, checkpoint.identity.opened);
  EXPECT_EQ(again->user, "ann");
  EXPECT_EQ(again->executed, 3);
  EXPECT_EQ(again->values[0].error, absl::InternalError("it failed"));
  const auto& run = std::get<SavedRun>(again->pending[0].operation);
  EXPECT_EQ(run.bindings.at("n"), -3);
  EXPECT_EQ(again->handles, checkpoint.handles);
  EXPECT_EQ(Encode(*again), Encode(checkpoint));
}

// The format of a daemon that did not know cancellations.
TEST(Checkpoint, AnEarlierVersionIsKnown) {
  Checkpoint checkpoint = CheckpointOf(7);
  checkpoint.cancelled.clear();
  std::string bytes = Encode(checkpoint);
  // Removes the number of cancellations; what version 3 added: no interval, no log, the updates
  // of one run; version 4: the devices of an origin; and version 5: its settings.
  bytes.resize(bytes.size() - 8);
  const auto again = Decode(bytes, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Encode(*again), Encode(checkpoint));
  EXPECT_TRUE(absl::IsDataLoss(Decode(bytes).status()));
}

// Written by a build that had another structure of the code: the format must not change with it.
TEST(Checkpoint, BytesOfAnEarlierBuildAreReadAndWritten) {
  const std::string bytes = absl::HexStringToBytes(
      "0e0673656372657402733706707974686f6e03312e3206612074657374030180a0b787e90580c0fc82aa02"
      "0180988be499030201056e6967687480e0ba84bf030207776569676874730404626961730903616e6e0563"
      "70753a3080e8888743090a80808080808080e83f0207612067726170680473746570056f74686572000601"
      "0d096974206661696c656402066b696c6e2f6101620b6b696c6e2f726561736f6e0357485902000c020406"
      "000c020406000c020406020502000002016de0c508016e0502000202010101030201040101050306040105"
      "00056370753a31020105076e6f7468696e67000000000700030361626380808080808080fc3f0201091414"
      "0304010900140501010302010001020d026e6f000104626c6f621802020c050d80b09dc2df010401010402"
      "00000102056370753a30056370753a3102046461746104056d6f64656c020201000000056370753a310205"
      "6370753a31056370753a3000");
  const auto checkpoint = Decode(bytes, 4);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->parked->name, "night");
  EXPECT_EQ(checkpoint->identity.checkpoint_interval, absl::Seconds(30));
  EXPECT_THAT(checkpoint->values, SizeIs(6));
  EXPECT_EQ(checkpoint->values[3].placement.sharding->devices[1], "cpu:1");
  ASSERT_THAT(checkpoint->pending, SizeIs(5));
  const auto& run = std::get<SavedRun>(checkpoint->pending[0].operation);
  EXPECT_EQ(run.bindings.at("m"), 70000);
  EXPECT_EQ(run.updates[0].before, 2);
  EXPECT_EQ(std::get<SavedMove>(checkpoint->pending[4].operation).placement.device, "cpu:1");
  EXPECT_EQ(checkpoint->log, 4);
  // Version 5 added the settings of each origin: the newest, and that it is not live.
  const std::string settings(2 * checkpoint->origins.size(), '\0');
  EXPECT_EQ(absl::BytesToHexString(Encode(*checkpoint)), absl::BytesToHexString(bytes + settings));
}

// Each of these checkpoints is well-formed and inconsistent.
TEST(Checkpoint, WhatContradictsItselfIsRefused) {
  const std::vector<void (*)(Checkpoint&)> faults = {
      [](Checkpoint& checkpoint) {
        checkpoint.pending.erase(checkpoint.pending.begin());
      },                                                                   // 1 is never made
      [](Checkpoint& checkpoint) { checkpoint.pending[1].sequence = 4; },  // was never executed
      [](Checkpoint& checkpoint) { checkpoint.pending[1].sequence = 2; },  // twice
      [](Checkpoint& checkpoint) { checkpoint.answers[0].sequence = 2; },  // answered and pending
      [](Checkpoint& checkpoint) { checkpoint.answers[0].value = 0; },     // value without bytes
      [](Checkpoint& checkpoint) { checkpoint.handles[0].first = 10; },    // was never used
      [](Checkpoint& checkpoint) { checkpoint.handles[0].first = 9; },     // twice
      [](Checkpoint& checkpoint) { checkpoint.handles[0].second = 2; },    // no such value
      [](Checkpoint& checkpoint) {
        checkpoint.programs.push_back({.number = 1});
      },  // was never used
      [](Checkpoint& checkpoint) { checkpoint.blobs.push_back({.name = "blob", .size = -1}); },
      [](Checkpoint& checkpoint) { checkpoint.identity.number = 0; },
      [](Checkpoint& checkpoint) { checkpoint.cancelled[0].cancel = 3; },  // was executed
      [](Checkpoint& checkpoint) { checkpoint.cancelled[1].cancel = 5; },  // twice
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    Checkpoint checkpoint = CheckpointOf(1);
    faults[i](checkpoint);
    EXPECT_TRUE(absl::IsDataLoss(Decode(Encode(checkpoint)).status())) << i;
  }
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  CheckpointStoreTest() {
    std::string pattern = "/tmp/kiln_store_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    Open();
  }
  ~CheckpointStoreTest() override { fs::remove_all(folder_); }

  void Open(int64_t limit_bytes = 1 << 20) {
    store_.reset();
    auto opened = CheckpointStore::Open({folder_ + "/sessions", limit_bytes});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  std::vector<fs::path> Files(const std::string& extension) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/sessions"))
      if (entry.path().extension() == extension) files.push_back(entry.path());
    return files;
  }

  absl::Status Save(const Checkpoint& checkpoint) { return store_->Save(checkpoint, deadline_); }

  std::string folder_;
  CopyDeadline deadline_{absl::Minutes(1)};
  std::unique_ptr<CheckpointStore> store_;
};

TEST_F(CheckpointStoreTest, SavedListedReadAndRemoved) {
  ASSERT_TRUE(Save(CheckpointOf(1)).ok());
  ASSERT_TRUE(Save(CheckpointOf(2)).ok());
  Open();
  const auto all = store_->List();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].checkpoint.identity.number + all[1].checkpoint.identity.number, 3);
  const auto reader = store_->Read(all[0]);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->Finish().ok());
  EXPECT_TRUE(store_->Remove(all[0]).ok());
  EXPECT_THAT(store_->List(), SizeIs(1));
  EXPECT_TRUE(store_->Remove(all[0]).ok());  // removing twice is not an error
  // File names do not contain secrets.
  for (const fs::path& path : Files(".session"))
    EXPECT_THAT(path.string(), ::testing::Not(HasSubstr("secret")));
}

TEST_F(CheckpointStoreTest, ACopyIsNoSecondSession) {
  ASSERT_TRUE(Save(CheckpointOf(1)).ok());
  const fs::path own = Files(".session")[0];
  const fs::path copy = own.parent_path() / "a_copy.session";
  fs::copy_file(own, copy);
  Open();
  const auto all = store_->List();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].path, own);
  EXPECT_TRUE(fs::exists(copy));
  // Without the original, the copy is not a session either.
  EXPECT_TRUE(store_->Remove(all[0]).ok());
  EXPECT_THAT(store_->List(), SizeIs(0));
  EXPECT_TRUE(fs::exists(copy));
}

TEST_F(CheckpointStoreTest, OneDaemonAtATime) {
  const auto second = CheckpointStore::Open({folder_ + "/sessions", 1 << 20});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--state_dir"));
}

TEST_F(CheckpointStoreTest, NoMoreThanTheLimit) {
  Open(2000);
  absl::Status status;
  int64_t saved = 0;
  for (; saved < 100 && status.ok(); ++saved) status = Save(CheckpointOf(saved + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("state.session_limit"));
  EXPECT_THAT(store_->List(), SizeIs(saved - 1));
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_ + "/sessions"))
    bytes += static_cast<int64_t>(entry.file_size());
  EXPECT_LE(bytes, 2000);
}

// As when a daemon stops: twice as many sessions take twice as many looks at files.
TEST_F(CheckpointStoreTest, SavingAllTakesOneLookAtEachFile) {
  int64_t number = 0;
  const auto looks_at_saving = [&](int sessions) {
    const int64_t before = store_->files_looked_at();
    store_->BeginSavingAll();
    for (int i = 0; i < sessions; ++i) EXPECT_TRUE(Save(CheckpointOf(++number)).ok());
    return store_->files_looked_at() - before;
  };
  EXPECT_LE(looks_at_saving(50), 5);
  EXPECT_LE(looks_at_saving(100), 50 + 5);
}

TEST_F(CheckpointStoreTest, TheLimitHoldsWhereAllAreSaved) {
  Open(2000);
  ASSERT_TRUE(Save(CheckpointOf(1)).ok());
  store_->BeginSavingAll();
  absl::Status status;
  int64_t saved = 1;
  for (; saved < 100 && status.ok(); ++saved) status = Save(CheckpointOf(saved + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_ + "/sessions"))
    bytes += static_cast<int64_t>(entry.file_size());
  EXPECT_LE(bytes, 2000);
  // Replacing a session's own file needs no more room.
  EXPECT_TRUE(Save(CheckpointOf(1)).ok());
}

TEST_F(CheckpointStoreTest, NoMoreThanAUsersLimit) {
  store_.reset();
  auto opened = CheckpointStore::Open(
      {.folder = folder_ + "/sessions",
       .limit_bytes = 1 << 20,
       .user_limit_bytes = [](const std::string& user) { return user == "ann" ? 2000 : 0; }});
  ASSERT_TRUE(opened.ok()) << opened.status();
  store_ = *std::move(opened);
  const auto checkpoint_of = [](const std::string& user, int64_t number) {
    Checkpoint checkpoint = CheckpointOf(number);
    checkpoint.user = user;
    return checkpoint;
  };
  absl::Status status;
  int64_t saved = 0;
  for (; saved < 100 && status.ok(); ++saved) status = Save(checkpoint_of("ann", saved + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("of disk for checkpoints"));
  EXPECT_LE(store_->BytesOf("ann"), 2000);
  // Saving again takes no more room, and other users have theirs.
  const int64_t before = store_->BytesOf("ann");
  EXPECT_TRUE(Save(checkpoint_of("ann", 1)).ok());
  EXPECT_EQ(store_->BytesOf("ann"), before);
  EXPECT_EQ(store_->BytesOf("../ann"), 0);
  for (int64_t i = 0; i < 2 * saved; ++i) EXPECT_TRUE(Save(checkpoint_of("../ann", 1000 + i)).ok());
  EXPECT_GT(store_->BytesOf("../ann"), 2000);
  EXPECT_THAT(store_->List(), SizeIs(3 * saved - 1));
}

// Simulates a full disk by a limit on the size of files.
TEST_F(CheckpointStoreTest, AFullDiskLeavesNoHalfFile) {
  ASSERT_TRUE(Save(CheckpointOf(1)).ok());
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = Save(CheckpointOf(2));
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, before);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("reserve room"));
  EXPECT_THAT(Files(".draft"), IsEmpty());
  const auto all = store_->List();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].checkpoint.identity.number, 1);
}

TEST_F(CheckpointStoreTest, WhatWasNotFinishedGoes) {
  ASSERT_TRUE(Save(CheckpointOf(1)).ok());
  const fs::path file = Files(".session")[0];
  fs::rename(file, file.string() + ".draft");
  EXPECT_THAT(store_->List(), IsEmpty());
  EXPECT_THAT(Files(".draft"), IsEmpty());
}

// Any changed bit, and any truncation.
TEST_F(CheckpointStoreTest, DamageIsFoundWhereverItIs) {
  ASSERT_TRUE(Save(CheckpointOf(1)).ok());
  const fs::path path = Files(".session")[0];
  std::ifstream in(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  const auto is_found = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    for (const auto& stored : store_->List()) {
      const auto reader = store_->Read(stored);
      if (reader.ok() && (*reader)->Finish().ok()) return false;
    }
    return true;
  };
  EXPECT_FALSE(is_found(good));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    EXPECT_TRUE(is_found(bytes)) << "byte " << i;
    EXPECT_TRUE(is_found(good.substr(0, i))) << i << " bytes";
  }
  EXPECT_TRUE(is_found(good + "x"));
}

TEST_F(CheckpointStoreTest, AnotherUsersKeyMakesNoFileOfOurs) {
  ASSERT_TRUE(Save(CheckpointOf(1)).ok());
  store_.reset();
  fs::remove(folder_ + "/sessions/sessions.key");
  Open();
  EXPECT_THAT(store_->List(), IsEmpty());
  EXPECT_THAT(Files(".session"), IsEmpty());
}

}  // namespace
}  // namespace kiln::sessions
