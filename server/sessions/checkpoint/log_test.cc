#include "server/sessions/checkpoint/log.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/sessions/checkpoint/log_record.h"

namespace kiln::sessions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

class SessionLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/kiln_log_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    secret_.emplace(*cache::Secret::Open(folder_ + "/key"));
  }
  void TearDown() override { fs::remove_all(folder_); }

  LogLocation Location() const { return {folder_ + "/s1", "an id", boot_}; }
  std::unique_ptr<SessionLog> Make(uint64_t last_number = 0, std::string last_tag = "") {
    return std::make_unique<SessionLog>(
        Location(), *secret_,
        [this](int64_t bytes) {
          ++asked_;
          return bytes <= room_ ? absl::OkStatus() : absl::ResourceExhaustedError("full");
        },
        last_number, std::move(last_tag));
  }
  static absl::Status Put(SessionLog& log, absl::string_view record) {
    return log.Append({record});
  }
  std::vector<std::string> Segments(const std::vector<uint64_t>& numbers) const {
    std::vector<std::string> paths;
    for (const uint64_t number : numbers) paths.push_back(SegmentPath(folder_ + "/s1", number));
    return paths;
  }
  // Returns the records, followed by the message of the error if there is one.
  std::vector<std::string> Read(const std::vector<uint64_t>& numbers) {
    SessionLogReader reader(Location(), *secret_, numbers[0], Segments(numbers));
    std::vector<std::string> all;
    while (true) {
      const auto record = reader.Next();
      if (!record.ok()) all.emplace_back(record.status().message());
      if (!record.ok() || !*record) break;
      all.push_back(**record);
    }
    last_tag_ = reader.last_tag();
    last_number_ = reader.last_number();
    return all;
  }

  std::string folder_;
  std::string boot_ = "this one";
  std::optional<cache::Secret> secret_;
  int64_t room_ = 1 << 30;
  int asked_ = 0;
  std::string last_tag_;
  uint64_t last_number_ = 0;
};

TEST_F(SessionLogTest, RecordsComeBackInOrder) {
  auto log = Make();
  ASSERT_TRUE(log->Begin("").ok());
  ASSERT_TRUE(Put(*log, "one").ok());
  ASSERT_TRUE(log->Append({"t", "w", "", "o"}).ok());
  ASSERT_TRUE(log->Begin("night").ok());
  ASSERT_TRUE(Put(*log, "").ok());
  const std::string large(3 << 20, 'x');
  ASSERT_TRUE(Put(*log, large).ok());
  EXPECT_THAT(Read({1, 2}), ElementsAre("one", "two", "", large));
  EXPECT_EQ(last_number_, 2);
  EXPECT_EQ(SessionLogReader::NameIn(Segments({1})[0], *secret_), "");
  EXPECT_EQ(SessionLogReader::NameIn(Segments({2})[0], *secret_), "night");
  EXPECT_GT(log->bytes_since(1), log->bytes_since(2));
}

// A large record is written in parts, between which other records may be written.
TEST_F(SessionLogTest, LargeRecordsHoldNobodyUp) {
  auto log = Make();
  ASSERT_TRUE(log->Begin("").ok());
  std::string large(11 << 20, 'x');
  for (size_t i = 0; i < large.size(); i += 1000) large[i] = static_cast<char>(i / 1000);
  const absl::string_view whole = large;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(Put(*log, "small").ok());
  });
  ASSERT_TRUE(log->Append({"head", whole.substr(0, 5 << 20), "", whole.substr(5 << 20)}).ok());
  other.join();
  auto all = Read({1});
  EXPECT_EQ(std::erase(all, "small"), 100);
  EXPECT_THAT(all, ElementsAre("head" + large));
  EXPECT_GT(fs::file_size(Segments({1})[0]), large.size());
}

// The rest of a record that began before the checkpoint is ignored; a truncated record is not
// joined with another.
TEST_F(SessionLogTest, PartsOfLargeRecordsAreNothing) {
  const std::string large(9 << 20, 'x');
  auto log = Make();
  ASSERT_TRUE(log->Begin("").ok());
  ASSERT_TRUE(Put(*log, large).ok());
  const std::string path = Segments({1})[0];
  fs::resize_file(path, fs::file_size(path) - 10);  // the last part
  EXPECT_THAT(Read({1}), IsEmpty());
  auto next = Make(last_number_, last_tag_);
  ASSERT_TRUE(next->Begin("").ok());
  const std::string other(9 << 20, 'y');
  ASSERT_TRUE(Put(*next, other).ok());
  EXPECT_THAT(Read({1, 2}), ElementsAre(other));
}

TEST_F(SessionLogTest, AnotherDaemonGoesOnWithIt) {
  ASSERT_TRUE(Make()->Begin("").ok());
  EXPECT_THAT(Read({1}), IsEmpty());
  auto next = Make(last_number_, last_tag_);
  ASSERT_TRUE(next->Begin("").ok());
  ASSERT_TRUE(Put(*next, "one").ok());
  EXPECT_THAT(Read({1, 2}), ElementsAre("one"));
}

TEST_F(SessionLogTest, WhatIsTakenOutIsMissed) {
  auto log = Make();
  for (const char* record : {"one", "two", "three"}) {
    ASSERT_TRUE(log->Begin("").ok());
    ASSERT_TRUE(Put(*log, record).ok());
  }
  EXPECT_THAT(Read({1, 2, 3}), ElementsAre("one", "two", "three"));
  EXPECT_THAT(Read({2, 3}), ElementsAre("two", "three"));
  EXPECT_THAT(Read({1, 3}), ElementsAre("one", HasSubstr("belongs to another session")));
  // Truncates the last record of a segment that is followed by another segment.
  const auto size = fs::file_size(Segments({2})[0]);
  fs::resize_file(Segments({2})[0], size - 10);
  EXPECT_THAT(Read({1, 2}), ElementsAre("one"));
  EXPECT_THAT(Read({1, 2, 3}), ElementsAre("one", HasSubstr("which is truncated")));
}

TEST_F(SessionLogTest, EachFlippedByteIsSeen) {
  auto log = Make();
  ASSERT_TRUE(log->Begin("").ok());
  for (const char* record : {"one", "two"}) ASSERT_TRUE(Put(*log, record).ok());
  const std::string path = Segments({1})[0];
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (size_t place = 0; place < bytes.size(); ++place) {
    std::string damaged = bytes;
    damaged[place] ^= 1;
    std::ofstream(path, std::ios::binary) << damaged;
    const auto read = Read({1});
    EXPECT_THAT(read.back(), HasSubstr("is damaged")) << place;
  }
}

TEST_F(SessionLogTest, ACutEndIsTheEnd) {
  auto log = Make();
  ASSERT_TRUE(log->Begin("").ok());
  ASSERT_TRUE(Put(*log, "one").ok());
  const std::string path = Segments({1})[0];
  const auto whole = fs::file_size(path);
  ASSERT_TRUE(Put(*log, "two").ok());
  for (auto size = fs::file_size(path) - 1; size >= whole; --size) {
    fs::resize_file(path, size);
    EXPECT_THAT(Read({1}), ElementsAre("one")) << size;
  }
  fs::resize_file(path, 20);  // of the header
  EXPECT_THAT(Read({1}), IsEmpty());
}

TEST_F(SessionLogTest, AnotherStartOfTheMachineRefusesIt) {
  auto log = Make();
  ASSERT_TRUE(log->Begin("").ok());
  ASSERT_TRUE(Put(*log, "one").ok());
  boot_ = "the next";
  EXPECT_THAT(Read({1}), ElementsAre(HasSubstr("before the machine was restarted")));
}

TEST_F(SessionLogTest, RoomIsAskedForNowAndThen) {
  auto log = Make();
  ASSERT_TRUE(log->Begin("").ok());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Put(*log, "one").ok());
  EXPECT_EQ(asked_, 1);
  const std::string large(2 << 20, 'x');
  ASSERT_TRUE(Put(*log, large).ok());
  EXPECT_EQ(asked_, 2);
  room_ = 100;
  EXPECT_TRUE(absl::IsResourceExhausted(Put(*log, large)));
  EXPECT_TRUE(Put(*log, "one").ok());  // it fits, although 1 MiB does not
}

TEST_F(SessionLogTest, DiscardedItIsGone) {
  auto log = Make();
  std::ofstream(folder_ + "/s1.session") << "a checkpoint";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(log->Begin("").ok());
  log->ForgetBefore(2);
  EXPECT_FALSE(fs::exists(Segments({1})[0]));
  EXPECT_TRUE(fs::exists(Segments({2})[0]));
  log->Discard();
  EXPECT_FALSE(fs::exists(folder_ + "/s1.session"));
  EXPECT_FALSE(fs::exists(Segments({2})[0]));
  EXPECT_FALSE(fs::exists(Segments({3})[0]));
  EXPECT_FALSE(Put(*log, "one").ok());
  EXPECT_FALSE(log->Begin("").ok());
}

template <typename Kind>
Kind ThereAndBack(Kind operation, absl::string_view data = "") {
  const ExecutedRecord executed{
      .sequence = 7, .acknowledged = 5, .highest_handle = 9, .highest_program = 2};
  const auto record =
      DecodeRecord(absl::StrCat(EncodeHead(executed), EncodeOperation(operation), data));
  EXPECT_TRUE(record.ok()) << record.status();
  if (!record.ok()) return Kind();
  const auto& again = std::get<ExecutedRecord>(*record);
  EXPECT_EQ(again.sequence, 7);
  EXPECT_EQ(again.acknowledged, 5);
  EXPECT_EQ(again.highest_handle, 9);
  EXPECT_EQ(again.highest_program, 2);
  return std::get<Kind>(again.operation);
}

TEST(LogRecord, OperationsComeBack) {
  const RunProgram run = ThereAndBack(RunProgram{3, {1, 2}, {4}, {{"n", -5}}, true});
  EXPECT_EQ(run.program, 3);
  EXPECT_THAT(run.inputs, ElementsAre(1, 2));
  EXPECT_THAT(run.outputs, ElementsAre(4));
  EXPECT_EQ(run.bindings, (runtime::Bindings{{"n", -5}}));
  EXPECT_TRUE(run.report_time);
  const Write write = ThereAndBack(Write{4, {ir::DType::kFloat32, {2}}, "", {"blob"}}, "12345678");
  EXPECT_EQ(write.data, "12345678");
  EXPECT_THAT(write.blobs, ElementsAre("blob"));
  EXPECT_EQ(write.type.bytes(), 8);
  EXPECT_EQ(ThereAndBack(Read{4}).handle, 4);
  const Release release = ThereAndBack(Release{{4, 5}, {"blob"}});
  EXPECT_THAT(release.handles, ElementsAre(4, 5));
  EXPECT_THAT(release.blobs, ElementsAre("blob"));
  EXPECT_EQ(ThereAndBack(ReleaseProgram{3}).program, 3);
  ThereAndBack(Barrier{});
  ThereAndBack(UnknownOperation{});
  EXPECT_EQ(ThereAndBack(Cancel{6}).first, 6);
  const Park park = ThereAndBack(Park{"night", absl::Hours(1), {{"weights", 4}}});
  EXPECT_EQ(park.name, "night");
  EXPECT_EQ(park.keep, absl::Hours(1));
  EXPECT_EQ(park.tensors[0].handle, 4);
  const Refused refused = ThereAndBack(Refused{absl::NotFoundError("nothing"), {4}});
  EXPECT_EQ(refused.error, absl::NotFoundError("nothing"));
  EXPECT_THAT(refused.handles, ElementsAre(4));
  const DefineProgram define = ThereAndBack(DefineProgram{3, absl::InternalError("no"), "step"});
  EXPECT_EQ(define.graph.status(), absl::InternalError("no"));
  EXPECT_EQ(define.name, "step");
}

// The bytes that earlier builds have written: the numbers and the order of fields are stored.
TEST(LogRecord, BytesAreThoseOfEarlierBuilds) {
  const auto sharded = [] {
    auto sharding = std::make_shared<buffers::Placement>();
    sharding->devices = {"cpu:0", "cpu:1"};
    sharding->mesh.axes = {{"data", 2}, {"model", 1}};
    sharding->spec = {{0}, {}};
    return RequestedPlacement{.sharding = std::move(sharding)};
  };
  const Write write{4, {ir::DType::kFloat32, {2}}, "", {"blob", "blub"}};
  Write placed = write, spread = write;
  placed.placement.device = "cpu:1";
  spread.placement = sharded();
  const DefineProgram define{3, absl::InternalError("no"), "step"};
  const DefineProgram define_on{3, absl::InternalError("no"), "step", {"cpu:0", "cpu:1"}};
  DefineProgram live = define;
  live.settings = 5;
  live.live = true;
  const std::vector<std::pair<Operation, absl::string_view>> known = {
      {UnknownOperation{}, "00"},
      {define, "0e0000000304737465700d026e6f00"},
      {define_on, "0e000002056370753a30056370753a310304737465700d026e6f00"},
      {live, "0e0501000304737465700d026e6f00"},
      {RunProgram{3, {1, 2}, {4}, {{"n", -5}}, true}, "0203020102010401016e0901"},
      {write, "03040c01040204626c6f6204626c7562"},
      {placed, "0c00056370753a31040c01040204626c6f6204626c7562"},
      {spread,
       "0c0102056370753a30056370753a3102046461746104056d6f64656c0202010000040c01040204626c6f6204626"
       "c7562"},
      {Read{4}, "0404"},
      {Release{{4, 5}, {"blob"}}, "050204050104626c6f62"},
      {ReleaseProgram{3}, "0603"},
      {Barrier{}, "07"},
      {Cancel{6}, "0806"},
      {Park{"night", absl::Hours(1), {{"weights", 4}}},
       "09056e696768748080c58bc6d10101077765696768747304"},
      {Refused{absl::NotFoundError("nothing"), {4}}, "0a05076e6f7468696e67000104"},
      {Move{1, 2, sharded()},
       "0b01020102056370753a30056370753a3102046461746104056d6f64656c0202010000"},
  };
  for (const auto& [operation, bytes] : known)
    EXPECT_EQ(absl::BytesToHexString(EncodeOperation(operation)), bytes);
  // Definitions of earlier builds have no settings.
  for (const auto& [operation, bytes] : std::vector<std::pair<Operation, absl::string_view>>{
           {define, "010304737465700d026e6f00"},
           {define_on, "0d02056370753a30056370753a310304737465700d026e6f00"}}) {
    const std::string record = absl::HexStringToBytes(bytes);
    Decoder in(record);
    const Operation decoded = DecodeOperation(in);
    EXPECT_TRUE(in.AtEnd());
    EXPECT_EQ(EncodeOperation(decoded), EncodeOperation(operation));
  }
}

TEST(LogRecord, TheOthersComeBack) {
  const auto cancelled = DecodeRecord(Encode(CancelledRecord{3, 9, {5, 4}}));
  ASSERT_TRUE(cancelled.ok());
  EXPECT_THAT(std::get<CancelledRecord>(*cancelled).runs, ElementsAre(5, 4));
  const auto blob = DecodeRecord(absl::StrCat(EncodeHead(BlobRecord{"name", ""}), "bytes"));
  ASSERT_TRUE(blob.ok());
  EXPECT_EQ(std::get<BlobRecord>(*blob).data, "bytes");
  const auto taken = DecodeRecord(Encode(TakenOverRecord{2}));
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(std::get<TakenOverRecord>(*taken).generation, 2);
  const auto deleted = DecodeRecord(Encode(BlobsDeletedRecord{{"a", "b"}}));
  ASSERT_TRUE(deleted.ok());
  EXPECT_THAT(std::get<BlobsDeletedRecord>(*deleted).names, ElementsAre("a", "b"));
  for (const char* nonsense : {"", "\x09", "\x01", "\x03"})
    EXPECT_TRUE(absl::IsDataLoss(DecodeRecord(nonsense).status()));
}

}  // namespace
}  // namespace kiln::sessions
