// The files of sessions that survive a daemon that is killed: damaged, too many, and eventually
// none.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/digest/sha256.h"
#include "tests/server/checkpoints/fixture.h"

namespace kiln::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(SnapshotTest, AKillBetweenAnImageAndTheEndOfItsJournal) {
  Start();
  Summer summer(address_, 1);
  for (int i = 0; i < 20; ++i) summer.Step();
  ASSERT_TRUE(summer.Settle());
  // Hard links keep the existing files. If the next snapshot is taken in between, they are made
  // again.
  const fs::path image = Files(".session")[0];
  const fs::path kept_image = folder_ + "/image", kept_segment = folder_ + "/segment";
  fs::path segment;
  ASSERT_TRUE(Eventually([&] {
    const auto segments = Files(".journal");
    if (segments.size() != 1) return false;
    segment = segments[0];
    fs::remove(kept_image);
    fs::remove(kept_segment);
    std::error_code image_failed, segment_failed;
    fs::create_hard_link(image, kept_image, image_failed);
    fs::create_hard_link(segment, kept_segment, segment_failed);
    return !image_failed && !segment_failed && Files(".journal") == segments;
  }));
  ASSERT_TRUE(Eventually([&] { return !fs::exists(segment); }));
  for (int i = 0; i < 20; ++i) summer.Step();
  ASSERT_TRUE(summer.Settle());
  End(SIGKILL);
  const bool only_one = Files(".journal").size() == 1;
  const std::string new_image = BytesOf(image);
  const fs::path new_segment = Files(".journal")[0];
  const std::string new_segment_bytes = BytesOf(new_segment);
  if (only_one) {
    // The state before the new snapshot replaced the old one.
    fs::copy_file(kept_image, image, fs::copy_options::overwrite_existing);
    fs::copy_file(kept_segment, segment);
    if (absl::EndsWith(new_segment.native(), ".2.journal")) {
      Start();
      ASSERT_EQ(summer.Attach(), "");
      summer.ExpectRight();
      End(SIGKILL);
    }
    // The state after it: the old segment still exists.
    for (const fs::path& each : Files(".journal")) fs::remove(each);
    Put(image, new_image);
    Put(new_segment, new_segment_bytes);
    fs::copy_file(kept_segment, segment);
  }
  Start();
  EXPECT_TRUE(Eventually([&] { return !fs::exists(segment); }));
}

class DamagedTest : public SnapshotTest {
 protected:
  // Changes files of a session whose daemon was killed, and attaches again.
  std::string After(
      const std::function<void(const fs::path& image, const fs::path& journal)>& change) {
    Start();
    Summer summer(address_);
    for (int i = 0; i < 10; ++i) summer.Step();
    EXPECT_TRUE(summer.Settle());
    End(SIGKILL);
    change(Files(".session")[0], Files(".journal")[0]);
    Start();
    const std::string reason = summer.Attach();
    if (reason.empty()) summer.ExpectRight();
    End(SIGKILL);
    fs::remove(folder_ + "/log");
    fs::remove_all(folder_ + "/state/sessions");
    return reason;
  }
  static void Flip(const fs::path& path, size_t place) {
    std::string bytes = BytesOf(path);
    bytes[place] ^= 4;
    Put(path, bytes);
  }
};

TEST_F(DamagedTest, AFlippedByteLosesTheSession) {
  for (const double part : {0.0, 0.1, 0.5, 0.9, 0.999}) {
    const auto flip = [&](const fs::path& path) {
      Flip(path, static_cast<size_t>(static_cast<double>(fs::file_size(path)) * part));
    };
    EXPECT_EQ(After([&](const fs::path& image, const fs::path&) { flip(image); }), "SESSION_LOST")
        << part;
    EXPECT_EQ(After([&](const fs::path&, const fs::path& journal) { flip(journal); }),
              "SESSION_LOST")
        << part;
  }
}

// An operation that was being written when the daemon was killed had not been answered.
TEST_F(DamagedTest, ATornEndIsNothing) {
  for (const size_t more : {1, 15, 17, 40}) {
    EXPECT_EQ(After([&](const fs::path&, const fs::path& journal) {
                // The beginning of another frame.
                const std::string bytes = BytesOf(journal);
                const std::string size("\x40\0\0\0\0\0\0\0\xbf\xff\xff\xff\xff\xff\xff\xff", 16);
                Put(journal, bytes + (size + std::string(60, 'x')).substr(0, more));
              }),
              "")
        << more;
  }
}

// Answered operations are missing: the client has seen more than the daemon has.
TEST_F(DamagedTest, AJournalThatWasCutLosesTheSession) {
  EXPECT_EQ(After([](const fs::path&, const fs::path& journal) {
              fs::resize_file(journal, fs::file_size(journal) * 2 / 3);
            }),
            "SESSION_LOST");
  EXPECT_EQ(After([](const fs::path&, const fs::path& journal) { fs::remove(journal); }),
            "SESSION_LOST");
}

TEST_F(DamagedTest, AnotherSessionsJournalIsNone) {
  Start();
  Summer one(address_), other(address_);
  one.Step();
  other.Step();
  ASSERT_TRUE(one.Settle() && other.Settle());
  End(SIGKILL);
  const auto journals = Files(".journal");
  ASSERT_THAT(journals, SizeIs(2));
  const std::string first = BytesOf(journals[0]), second = BytesOf(journals[1]);
  Put(journals[0], second);
  Put(journals[1], first);
  Start();
  EXPECT_EQ(one.Attach(), "SESSION_LOST");
  EXPECT_EQ(other.Attach(), "SESSION_LOST");
}

TEST_F(SnapshotTest, FilesGoWithTheSession) {
  Start();
  {
    Summer summer(address_);
    summer.Step();
    ASSERT_TRUE(summer.Settle());
    EXPECT_THAT(Files(".session"), SizeIs(1));
    grpc::ClientContext context;
    v1::CloseSessionRequest request;
    request.set_session_id(summer.client().session.session_id());
    v1::CloseSessionResponse response;
    ASSERT_TRUE(summer.client().sessions->CloseSession(&context, request, &response).ok());
  }
  EXPECT_THAT(Files(".session"), IsEmpty());
  EXPECT_THAT(Files(".journal"), IsEmpty());
  // SIGINT closes all sessions.
  Summer summer(address_);
  summer.Step();
  ASSERT_TRUE(summer.Settle());
  End(SIGINT);
  EXPECT_THAT(Files(".session"), IsEmpty());
  EXPECT_THAT(Files(".journal"), IsEmpty());
}

TEST_F(SnapshotTest, FilesOfAnotherSecretAreNone) {
  Start();
  Summer summer(address_);
  summer.Step();
  ASSERT_TRUE(summer.Settle());
  End(SIGKILL);
  fs::remove(folder_ + "/state/sessions/sessions.key");
  Start();
  EXPECT_EQ(summer.Attach(), "SESSION_LOST");
  EXPECT_THAT(Files(".session"), IsEmpty());
  EXPECT_THAT(Files(".journal"), IsEmpty());
}

// A session whose work kills daemons does not kill all later ones.
TEST_F(SnapshotTest, AfterAFewDaemonsASessionIsGivenUp) {
  Start();
  Summer summer(address_);
  summer.Step();
  ASSERT_TRUE(summer.Settle());
  for (const int ended : {4, 5}) {
    End(SIGKILL);
    const fs::path attempts = Files(".session")[0].replace_extension(".attempts");
    EXPECT_FALSE(fs::exists(attempts));
    Put(attempts, std::string(ended, '.'));
    Start();
    if (ended < 5) {
      ASSERT_EQ(summer.Attach(), "");
      summer.ExpectRight();
    } else {
      EXPECT_EQ(summer.Attach(), "SESSION_LOST");
      EXPECT_TRUE(Eventually([&] { return absl::StrContains(Log(), "daemons ended"); }));
      EXPECT_THAT(Files(".attempts"), IsEmpty());
      EXPECT_THAT(Files(".journal"), IsEmpty());
    }
  }
}

std::vector<std::string> Find(const Client& client, const std::string& blob) {
  grpc::ClientContext context;
  v1::FindBlobsRequest request;
  request.set_session_id(client.session.session_id());
  request.add_blobs(blob);
  v1::FindBlobsResponse response;
  EXPECT_TRUE(client.blobs->FindBlobs(&context, request, &response).ok());
  return {response.found().begin(), response.found().end()};
}

TEST_F(SnapshotTest, WhoAsksForABlobAgainAndAgainFillsNoDisk) {
  Start();
  Client client(address_, 0, "", kSeldom);
  auto stream = client.Connect();
  const std::vector<float> floats(100'000, 7);
  const std::string bytes(reinterpret_cast<const char*>(floats.data()), 400'000);
  const std::string name = "sha256:" + Sha256Hex(bytes);
  ASSERT_TRUE(client.Upload(name, bytes).ok());
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Find(client, name), SizeIs(1));
  EXPECT_LT(fs::file_size(Files(".journal")[0]), 900'000);
  // A used blob is written to the journal when it is requested again.
  EXPECT_FALSE(stream->Call(WriteBlob(1, name, 100'000)).has_error());
  EXPECT_THAT(Find(client, name), SizeIs(1));
  EXPECT_GT(fs::file_size(Files(".journal")[0]), 1'100'000);
  stream.reset();
  KillAndStart();
  stream = Reattach(address_, client, 1);
  ASSERT_NE(stream, nullptr);
  EXPECT_FALSE(stream->Call(WriteBlob(2, name, 100'000)).has_error());
  EXPECT_EQ(Floats(stream->Call(Read(2)).data()), floats);
}

TEST_F(SnapshotTest, DeletedBlobsStayDeleted) {
  Start();
  Client client(address_, 0, "", kSeldom);
  ASSERT_TRUE(client.Upload("one", "1234").ok());
  ASSERT_TRUE(client.Upload("two", "5678").ok());
  grpc::ClientContext context;
  v1::DeleteBlobsRequest request;
  request.set_session_id(client.session.session_id());
  request.add_blobs("one");
  v1::DeleteBlobsResponse response;
  ASSERT_TRUE(client.blobs->DeleteBlobs(&context, request, &response).ok());
  KillAndStart();
  auto stream = Reattach(address_, client);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(Reason(stream->Call(WriteBlob(1, "one", 1)).error()), "UNKNOWN_BLOB");
  EXPECT_FALSE(stream->Call(WriteBlob(2, "two", 1)).has_error());
}

TEST_F(SnapshotTest, AStopAndAKillInTurn) {
  Start();
  Summer summer(address_);
  for (const int signal : {SIGTERM, SIGKILL, SIGKILL, SIGTERM, SIGTERM, SIGKILL}) {
    for (int i = 0; i < 10; ++i) summer.Step();
    End(signal);
    Start();
    ASSERT_EQ(summer.Attach(), "");
  }
  summer.ExpectRight();
}

class SmallDiskTest : public SnapshotTest {
 protected:
  // Fills the allowed disk space and continues.
  void Fill(Summer& summer) {
    const std::vector<float> floats(100'000, 1);
    for (int i = 0; i < 12; ++i) summer.Do(Write(summer.NewHandle(), floats));
    ASSERT_TRUE(summer.Settle());
    ASSERT_TRUE(Eventually([&] { return absl::StrContains(Log(), "event=session_unprotected"); }));
    EXPECT_FALSE(IsProtected());
    EXPECT_THAT(Files(".session"), IsEmpty());
    EXPECT_THAT(Files(".journal"), IsEmpty());
    summer.Step();
    summer.ExpectRight();
  }
};

TEST_F(SmallDiskTest, WithoutRoomTheSessionGoesOnUnprotected) {
  config_ = "[state]\nsession_limit = \"3MiB\"\n";
  Start();
  Summer summer(address_);
  EXPECT_TRUE(IsProtected());
  Fill(summer);
  EXPECT_THAT(Log(), HasSubstr("raise state.session_limit"));
  KillAndStart();
  EXPECT_EQ(summer.Attach(), "SESSION_LOST");
}

TEST_F(SmallDiskTest, TheQuotaIsTheUsers) {
  config_ = "[quota]\ndisk = \"3MiB\"\n";
  Start();
  Summer summer(address_);
  EXPECT_TRUE(IsProtected());
  Fill(summer);
}

// A snapshot that is being replaced does not count in addition to the new one.
TEST_F(SmallDiskTest, OneImageFitsAgainAndAgain) {
  config_ = "[quota]\ndisk = \"5MiB\"\n";
  Start();
  Summer summer(address_, 1);
  summer.Do(Write(summer.NewHandle(), std::vector<float>(500'000, 1)));  // 2 MB, also in a journal
  ASSERT_TRUE(summer.Settle());
  for (int images = 0; images < 3; ++images) {
    const auto before = Listed().snapshot_taken().SerializeAsString();
    ASSERT_TRUE(
        Eventually([&] { return Listed().snapshot_taken().SerializeAsString() != before; }));
    summer.Step();
    ASSERT_TRUE(summer.Settle());
  }
  EXPECT_THAT(Log(), Not(HasSubstr("event=snapshot_failed")));
  KillAndStart();
  ASSERT_EQ(summer.Attach(), "");
  summer.ExpectRight();
}

// Otherwise, after a client that writes much, a daemon would take long to repeat everything.
TEST_F(SnapshotTest, ALongJournalBringsTheNextImageEarly) {
  Start();
  Client client(address_, 0, "", kSeldom);
  auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(Write(1, {0})).has_error());
  ASSERT_TRUE(Eventually([&] { return IsProtected(); }));
  const auto first = Files(".journal");
  ASSERT_THAT(first, SizeIs(1));
  constexpr size_t kFloats = 1 << 20;
  std::vector<float> written;
  // 4 MiB each. A journal of more than 256 MiB is long: 64 of them, with their descriptions.
  uint64_t handle = 1;
  for (int i = 0; i < 65; ++i) {
    // After 64, the snapshot may be taken at any time.
    if (i < 64) {
      EXPECT_EQ(Files(".journal"), first) << "after " << i;
    }
    written.assign(kFloats, static_cast<float>(i));
    const v1::Result result = stream->Call(Write(++handle, written));
    ASSERT_FALSE(result.has_error()) << result.error().message();
  }
  ASSERT_TRUE(WaitForSegmentAfter(first));
  const uint64_t last = stream->next_sequence() - 1;
  KillAndStart();
  ASSERT_NE(Reattach(address_, client, last), nullptr);
  client.channel = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  client.blobs = v1::BlobService::NewStub(client.channel);
  std::string bytes;
  ASSERT_TRUE(client.Download(handle, last, &bytes).ok());
  EXPECT_TRUE(Floats(bytes) == written);
}

TEST_F(SnapshotTest, WithoutAFolderItIsRefused) {
  // A file in place of the folder.
  fs::create_directory(folder_ + "/state");
  chmod((folder_ + "/state").c_str(), 0700);
  Put(folder_ + "/state/sessions", "");
  Start();
  Client client(address_, 0, "", 1);
  EXPECT_EQ(Reason(client.opened), "SNAPSHOTS_UNAVAILABLE");
  EXPECT_TRUE(Client(address_).opened.ok());
}

}  // namespace
}  // namespace kiln::testing
