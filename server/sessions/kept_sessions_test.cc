// Saved sessions: descriptions, sealed files, the folder.
#include "server/sessions/kept_sessions.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/sessions/encoding.h"

namespace kiln::sessions {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

TEST(Encoding, NumbersComeBack) {
  Encoder out;
  const std::vector<int64_t> numbers = {0, 1, -1, 127, 128, -12345, INT64_MAX, INT64_MIN};
  for (const int64_t number : numbers) out.Signed(number);
  out.Number(UINT64_MAX);
  out.Real(-0.1);
  out.Text("text");
  const std::string bytes = out.Take();
  Decoder in(bytes);
  for (const int64_t number : numbers) EXPECT_EQ(in.Signed(), number);
  EXPECT_EQ(in.Number(), UINT64_MAX);
  EXPECT_EQ(in.Real(), -0.1);
  EXPECT_EQ(in.Text(), "text");
  EXPECT_TRUE(in.AtEnd());
}

TEST(Encoding, WhatIsCutOrTooLargeFails) {
  for (const absl::string_view bytes : {"", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"}) {
    Decoder in(bytes);
    EXPECT_EQ(in.Number(), 0);
    EXPECT_FALSE(in.ok());
  }
  Decoder text(
      "\x05"
      "four");
  EXPECT_EQ(text.Text(), "");
  EXPECT_FALSE(text.ok());
}

SessionImage ImageOf(int64_t number) {
  SessionImage image;
  image.identity.number = number;
  image.identity.id = absl::StrCat("secret ", number);
  image.identity.name = absl::StrCat("s", number);
  image.identity.priority = fairness::Priority::kBatch;
  image.identity.lease = absl::Seconds(100);
  image.identity.opened = absl::FromUnixSeconds(5);
  image.user = "ann";
  image.device = "cpu:0";
  image.executed = 3;
  image.values.push_back(
      {.kind = SessionImage::Value::Kind::kFailed, .error = absl::InternalError("it failed")});
  image.values.push_back({});
  auto origin = std::make_shared<ProgramOrigin>();
  origin->wire = "a graph";
  image.origins.push_back(origin);
  image.pending.push_back(
      {2, SessionImage::Run{.origin = 0, .bindings = {{"n", -3}}, .inputs = {0}, .results = {1}}});
  image.pending.push_back({3, SessionImage::Read{1}});
  image.answers.push_back({.sequence = 1, .error = absl::NotFoundError("nothing")});
  image.used_handles.InsertAll(1, 9);
  image.handles = {{4, 1}, {9, 0}};
  image.cancelled = {{2, 5}, {5, 7}};
  return image;
}

TEST(Image, ComesBackAsItWas) {
  const SessionImage image = ImageOf(7);
  const auto again = Decode(Encode(image));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->identity.id, "secret 7");
  EXPECT_EQ(again->identity.priority, fairness::Priority::kBatch);
  EXPECT_EQ(again->identity.opened, image.identity.opened);
  EXPECT_EQ(again->user, "ann");
  EXPECT_EQ(again->executed, 3);
  EXPECT_EQ(again->values[0].error, absl::InternalError("it failed"));
  const auto& run = std::get<SessionImage::Run>(again->pending[0].operation);
  EXPECT_EQ(run.bindings.at("n"), -3);
  EXPECT_EQ(again->handles, image.handles);
  EXPECT_EQ(Encode(*again), Encode(image));
}

// The format of a daemon that did not know cancellations.
TEST(Image, AnEarlierVersionIsKnown) {
  SessionImage image = ImageOf(7);
  image.cancelled.clear();
  std::string bytes = Encode(image);
  // Removes the number of cancellations; what version 3 added: no interval, no journal, the updates
  // of one run; and version 4: the devices of an origin.
  bytes.resize(bytes.size() - 6);
  const auto again = Decode(bytes, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Encode(*again), Encode(image));
  EXPECT_TRUE(absl::IsDataLoss(Decode(bytes).status()));
}

// Each of these images is well-formed and inconsistent.
TEST(Image, WhatContradictsItselfIsRefused) {
  const std::vector<void (*)(SessionImage&)> faults = {
      [](SessionImage& image) { image.pending.erase(image.pending.begin()); },  // 1 is never made
      [](SessionImage& image) { image.pending[1].sequence = 4; },            // was never executed
      [](SessionImage& image) { image.pending[1].sequence = 2; },            // twice
      [](SessionImage& image) { image.answers[0].sequence = 2; },            // answered and pending
      [](SessionImage& image) { image.answers[0].value = 0; },               // value without bytes
      [](SessionImage& image) { image.handles[0].first = 10; },              // was never used
      [](SessionImage& image) { image.handles[0].first = 9; },               // twice
      [](SessionImage& image) { image.handles[0].second = 2; },              // no such value
      [](SessionImage& image) { image.programs.push_back({.number = 1}); },  // was never used
      [](SessionImage& image) { image.blobs.push_back({.name = "blob", .size = -1}); },
      [](SessionImage& image) { image.identity.number = 0; },
      [](SessionImage& image) { image.cancelled[0].cancel = 3; },  // was executed
      [](SessionImage& image) { image.cancelled[1].cancel = 5; },  // twice
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    SessionImage image = ImageOf(1);
    faults[i](image);
    EXPECT_TRUE(absl::IsDataLoss(Decode(Encode(image)).status())) << i;
  }
}

class KeptSessionsTest : public ::testing::Test {
 protected:
  KeptSessionsTest() {
    std::string pattern = "/tmp/kiln_kept_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    Open();
  }
  ~KeptSessionsTest() override { fs::remove_all(folder_); }

  void Open(int64_t limit_bytes = 1 << 20) {
    kept_.reset();
    auto opened = KeptSessions::Open({folder_ + "/sessions", limit_bytes});
    ASSERT_TRUE(opened.ok()) << opened.status();
    kept_ = *std::move(opened);
  }
  std::vector<fs::path> Files(const std::string& extension) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/sessions"))
      if (entry.path().extension() == extension) files.push_back(entry.path());
    return files;
  }

  absl::Status Save(const SessionImage& image) { return kept_->Save(image, patience_); }

  std::string folder_;
  Patience patience_{absl::Minutes(1)};
  std::unique_ptr<KeptSessions> kept_;
};

TEST_F(KeptSessionsTest, SavedListedReadAndRemoved) {
  ASSERT_TRUE(Save(ImageOf(1)).ok());
  ASSERT_TRUE(Save(ImageOf(2)).ok());
  Open();
  const auto all = kept_->List();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].image.identity.number + all[1].image.identity.number, 3);
  const auto reader = kept_->Read(all[0]);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->Finish().ok());
  EXPECT_TRUE(kept_->Remove(all[0]).ok());
  EXPECT_THAT(kept_->List(), SizeIs(1));
  EXPECT_TRUE(kept_->Remove(all[0]).ok());  // removing twice is not an error
  // File names do not contain secrets.
  for (const fs::path& path : Files(".session"))
    EXPECT_THAT(path.string(), ::testing::Not(HasSubstr("secret")));
}

TEST_F(KeptSessionsTest, ACopyIsNoSecondSession) {
  ASSERT_TRUE(Save(ImageOf(1)).ok());
  const fs::path own = Files(".session")[0];
  const fs::path copy = own.parent_path() / "a_copy.session";
  fs::copy_file(own, copy);
  Open();
  const auto all = kept_->List();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].path, own);
  EXPECT_TRUE(fs::exists(copy));
  // Without the original, the copy is not a session either.
  EXPECT_TRUE(kept_->Remove(all[0]).ok());
  EXPECT_THAT(kept_->List(), SizeIs(0));
  EXPECT_TRUE(fs::exists(copy));
}

TEST_F(KeptSessionsTest, OneDaemonAtATime) {
  const auto second = KeptSessions::Open({folder_ + "/sessions", 1 << 20});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--state_dir"));
}

TEST_F(KeptSessionsTest, NoMoreThanTheLimit) {
  Open(2000);
  absl::Status status;
  int64_t saved = 0;
  for (; saved < 100 && status.ok(); ++saved) status = Save(ImageOf(saved + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("state.session_limit"));
  EXPECT_THAT(kept_->List(), SizeIs(saved - 1));
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_ + "/sessions"))
    bytes += static_cast<int64_t>(entry.file_size());
  EXPECT_LE(bytes, 2000);
}

// As when a daemon stops: twice as many sessions take twice as many looks at files.
TEST_F(KeptSessionsTest, SavingAllTakesOneLookAtEachFile) {
  int64_t number = 0;
  const auto looks_at_saving = [&](int sessions) {
    const int64_t before = kept_->files_looked_at();
    kept_->BeginSavingAll();
    for (int i = 0; i < sessions; ++i) EXPECT_TRUE(Save(ImageOf(++number)).ok());
    return kept_->files_looked_at() - before;
  };
  EXPECT_LE(looks_at_saving(50), 5);
  EXPECT_LE(looks_at_saving(100), 50 + 5);
}

TEST_F(KeptSessionsTest, TheLimitHoldsWhereAllAreSaved) {
  Open(2000);
  ASSERT_TRUE(Save(ImageOf(1)).ok());
  kept_->BeginSavingAll();
  absl::Status status;
  int64_t saved = 1;
  for (; saved < 100 && status.ok(); ++saved) status = Save(ImageOf(saved + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_ + "/sessions"))
    bytes += static_cast<int64_t>(entry.file_size());
  EXPECT_LE(bytes, 2000);
  // Replacing a session's own file needs no more room.
  EXPECT_TRUE(Save(ImageOf(1)).ok());
}

TEST_F(KeptSessionsTest, NoMoreThanAUsersLimit) {
  kept_.reset();
  auto opened = KeptSessions::Open(
      {.folder = folder_ + "/sessions",
       .limit_bytes = 1 << 20,
       .user_limit_bytes = [](const std::string& user) { return user == "ann" ? 2000 : 0; }});
  ASSERT_TRUE(opened.ok()) << opened.status();
  kept_ = *std::move(opened);
  const auto image_of = [](const std::string& user, int64_t number) {
    SessionImage image = ImageOf(number);
    image.user = user;
    return image;
  };
  absl::Status status;
  int64_t saved = 0;
  for (; saved < 100 && status.ok(); ++saved) status = Save(image_of("ann", saved + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("of disk for checkpoints"));
  EXPECT_LE(kept_->BytesOf("ann"), 2000);
  // Saving again takes no more room, and other users have theirs.
  const int64_t before = kept_->BytesOf("ann");
  EXPECT_TRUE(Save(image_of("ann", 1)).ok());
  EXPECT_EQ(kept_->BytesOf("ann"), before);
  EXPECT_EQ(kept_->BytesOf("../ann"), 0);
  for (int64_t i = 0; i < 2 * saved; ++i) EXPECT_TRUE(Save(image_of("../ann", 1000 + i)).ok());
  EXPECT_GT(kept_->BytesOf("../ann"), 2000);
  EXPECT_THAT(kept_->List(), SizeIs(3 * saved - 1));
}

// Simulates a full disk by a limit on the size of files.
TEST_F(KeptSessionsTest, AFullDiskLeavesNoHalfFile) {
  ASSERT_TRUE(Save(ImageOf(1)).ok());
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = Save(ImageOf(2));
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, before);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("reserve room"));
  EXPECT_THAT(Files(".draft"), IsEmpty());
  const auto all = kept_->List();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].image.identity.number, 1);
}

TEST_F(KeptSessionsTest, WhatWasNotFinishedGoes) {
  ASSERT_TRUE(Save(ImageOf(1)).ok());
  const fs::path file = Files(".session")[0];
  fs::rename(file, file.string() + ".draft");
  EXPECT_THAT(kept_->List(), IsEmpty());
  EXPECT_THAT(Files(".draft"), IsEmpty());
}

// Any changed bit, and any truncation.
TEST_F(KeptSessionsTest, DamageIsFoundWhereverItIs) {
  ASSERT_TRUE(Save(ImageOf(1)).ok());
  const fs::path path = Files(".session")[0];
  std::ifstream in(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  const auto is_found = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    for (const auto& kept : kept_->List()) {
      const auto reader = kept_->Read(kept);
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

TEST_F(KeptSessionsTest, AnotherUsersKeyMakesNoFileOfOurs) {
  ASSERT_TRUE(Save(ImageOf(1)).ok());
  kept_.reset();
  fs::remove(folder_ + "/sessions/sessions.key");
  Open();
  EXPECT_THAT(kept_->List(), IsEmpty());
  EXPECT_THAT(Files(".session"), IsEmpty());
}

}  // namespace
}  // namespace kiln::sessions
