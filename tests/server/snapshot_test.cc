// Sessions that survive a daemon that is killed: real kilnd processes and SIGKILL.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/client.h"
#include "tests/server/exact_client.h"
#include "tests/server/kilnd_process.h"

namespace kiln::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// No image but the first is taken.
constexpr uint32_t kSeldom = 3600;

bool Comes(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!condition() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(2));
  return condition();
}

std::string BytesOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  chmod(path.c_str(), 0600);
}

class SnapshotTest : public ProcessTest {
 protected:
  std::vector<std::string> Flags() override {
    std::vector<std::string> flags = ProcessTest::Flags();
    if (!config_.empty()) {
      Put(folder_ + "/kilnd.toml", config_);
      flags.push_back(absl::StrCat("--config=", folder_, "/kilnd.toml"));
    }
    return flags;
  }
  void KillAndStart() {
    End(SIGKILL);
    Start();
  }
  // Files of sessions, by what their names end in.
  std::vector<fs::path> Files(absl::string_view suffix) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/state/sessions"))
      if (absl::EndsWith(entry.path().native(), suffix)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  // Of the only session.
  v1::Session Listed() {
    const v1::ListSessionsResponse all = Sessions(address_);
    for (const v1::Session& session : all.sessions())
      if (session.snapshot_seconds() > 0) return session;
    return {};
  }
  bool IsProtected() { return Listed().has_snapshot_taken(); }

  std::string config_;
};

// Adds up 1, 2, 3, … in a handle: what comes once too often or too seldom shows.
class Summer {
 public:
  explicit Summer(const std::string& address, uint32_t snapshot_seconds = kSeldom,
                  int64_t floats = 4)
      : address_(address),
        client_(address, 0, "", snapshot_seconds),
        floats_(floats),
        stream_(client_.Connect()) {
    v1::Graph graph = AccumulateGraph(floats);
    graph.clear_outputs();
    Do(Define(1, graph));
    Do(Write(1, std::vector<float>(floats, 0)));
    handle_ = 2;
  }
  const Client& client() const { return client_; }
  Stream& stream() { return *stream_; }

  // One step: a Write, a run, a release of what is not needed any more.
  void Step() {
    ++steps_;
    Do(Write(handle_, std::vector<float>(floats_, static_cast<float>(steps_))));
    Do(RunProgram(1, {1, handle_}, {}));
    Do(Release({handle_++}));
  }
  // Waits until all is answered.
  bool Settle() {
    for (; answered_ < sent_; ++answered_)
      if (stream_->Answer(answered_ + 1).has_error()) return false;
    return true;
  }
  // Attaches again, and sends what is missing. The reason if that fails.
  std::string Attach() {
    grpc::Status why;
    stream_->Drop();
    stream_ = Reattach(address_, client_, answered_, &why);
    if (!stream_) return Reason(why);
    for (uint64_t next = stream_->last_sequence() + 1; next <= sent_; ++next)
      stream_->Send(kept_.at(next), next);
    return {};
  }
  // Bit for bit.
  void ExpectRight() {
    Do(Read(1));
    ++answered_ = sent_;
    const v1::Result result = stream_->Answer(sent_);
    EXPECT_FALSE(result.has_error()) << result.error().message();
    float sum = 0;
    for (int step = 1; step <= steps_; ++step) sum += static_cast<float>(step);
    EXPECT_EQ(Floats(result.data()), std::vector<float>(floats_, sum));
  }
  uint64_t Do(v1::ConnectRequest request) {
    kept_[++sent_] = request;
    request.set_acknowledged(answered_);
    stream_->Send(request, sent_);
    return sent_;
  }
  uint64_t NewHandle() { return handle_++; }

 private:
  const std::string address_;
  Client client_;
  const int64_t floats_;
  std::unique_ptr<Stream> stream_;
  std::map<uint64_t, v1::ConnectRequest> kept_;
  uint64_t sent_ = 0, answered_ = 0, handle_ = 0;
  int steps_ = 0;
};

TEST_F(SnapshotTest, ASessionGoesOnAfterAKill) {
  Start();
  Summer summer(address_);
  for (int i = 0; i < 50; ++i) summer.Step();
  ASSERT_TRUE(summer.Settle());
  KillAndStart();
  ASSERT_EQ(summer.Attach(), "");
  for (int i = 0; i < 50; ++i) summer.Step();
  KillAndStart();  // with much that has not been answered
  ASSERT_EQ(summer.Attach(), "");
  summer.ExpectRight();
}

TEST_F(SnapshotTest, OneThatDidNotAskForItIsLost) {
  Start();
  Summer asked(address_), did_not(address_, 0);
  asked.Step();
  did_not.Step();
  ASSERT_TRUE(asked.Settle() && did_not.Settle());
  EXPECT_THAT(Files(".session"), SizeIs(1));
  KillAndStart();
  EXPECT_EQ(did_not.Attach(), "SESSION_LOST");
  ASSERT_EQ(asked.Attach(), "");
  asked.ExpectRight();
}

// Whatever the moment of the kill, and whatever the connection does.
TEST_F(SnapshotTest, EachOperationTakesEffectOnce) {
  const char* given = std::getenv("KILN_SEED");
  const uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  const char* operations = std::getenv("KILN_OPERATIONS");
  const int steps = operations == nullptr ? 3000 : std::atoi(operations);
  Random random(seed), accidents(seed + 1);
  Start();
  Client client(address_, 0, "", 1);
  Sender sender(address_, client);
  for (Exact& define : Model::First()) sender.Send(std::move(define));
  sender.AnswerAllBut(0);
  Model model;
  int kills = 0;
  for (int step = 0; step < steps && sender.wrong().empty(); ++step) {
    sender.Send(model.Next(random));
    if (sender.in_flight() > accidents() % 256) sender.AnswerAllBut(accidents() % 64);
    if (accidents() % 200 == 0) sender.Cut();
    if (accidents() % 1000 == 0) {
      // So that another process takes it over, whose numbers go on behind these.
      sender.Send(model.Leave("exact"));
      sender.AnswerAllBut(0);
      sender.Cut();
      if (accidents() % 2 == 0) KillAndStart(), ++kills;
      v1::AttachSessionRequest request;
      request.set_name("exact");
      v1::AttachSessionResponse taken;
      grpc::Status status;
      do {
        const auto stub = v1::SessionService::NewStub(
            grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
        grpc::ClientContext context;
        status = stub->AttachSession(&context, request, &taken);
      } while (status.error_code() == grpc::UNAVAILABLE);
      ASSERT_TRUE(status.ok()) << status.error_message();
      client.session = taken.session();
      for (Exact& define : model.DefineAgain()) sender.Send(std::move(define));
    }
    if (accidents() % 250 != 0) continue;
    for (uint64_t more = accidents() % 100; more > 0; --more) sender.Send(model.Next(random));
    if (accidents() % 2 == 0) sender.Cut();
    // Now and then it is stopped as it should be.
    End(accidents() % 4 == 0 ? SIGTERM : SIGKILL);
    Start();
    sender.Cut();
    ++kills;
  }
  for (Exact& read : model.Last()) sender.Send(std::move(read));
  sender.AnswerAllBut(0);
  EXPECT_EQ(sender.wrong(), "") << "KILN_SEED=" << seed;
  EXPECT_GT(kills, 3);
}

// Uploads, a run that is cancelled, a name: each at a random moment.
TEST_F(SnapshotTest, TrainingWithAllThatGoesWithIt) {
  for (const uint64_t seed : {1, 2, 3}) {
    Random random(seed);
    Start();
    Summer summer(address_, 1, 1000);
    double uploaded = 0;
    for (int i = 0; i < 40; ++i) {
      summer.Step();
      if (i % 5 == 0) {
        const std::string blob = absl::StrCat("blob ", i);
        const std::vector<float> floats(1000, static_cast<float>(i));
        const std::string bytes(reinterpret_cast<const char*>(floats.data()), 4000);
        ASSERT_TRUE(summer.Settle());
        ASSERT_TRUE(const_cast<Client&>(summer.client()).Upload(blob, bytes).ok());
        // It has been told that its blob is there.
        if (random() % 2 == 0) {
          KillAndStart();
          ASSERT_EQ(summer.Attach(), "");
        }
        const uint64_t handle = summer.NewHandle();
        summer.Do(WriteBlob(handle, blob, 1000));
        const uint64_t read = summer.Do(Read(handle));
        if (random() % 2 == 0) {
          KillAndStart();
          ASSERT_EQ(summer.Attach(), "");
        }
        EXPECT_EQ(Floats(summer.stream().Answer(read).data()), floats);
        ASSERT_TRUE(summer.Settle());
        uploaded += i;
      }
      if (random() % 8 == 0) {
        KillAndStart();
        ASSERT_EQ(summer.Attach(), "");
      }
    }
    EXPECT_GT(uploaded, 0);
    summer.ExpectRight();
    End(SIGKILL);
    fs::remove_all(folder_ + "/state");
    fs::remove(folder_ + "/log");
  }
}

// A run is cancelled as a whole, or not at all, and what comes after it sees that after a kill,
// too.
TEST_F(SnapshotTest, WhatWasCancelledStaysSo) {
  Start();
  Client client(address_, 0, "", kSeldom);
  auto stream = client.Connect();
  constexpr int64_t kFloats = 1 << 20;
  v1::Graph graph = AccumulateGraph(kFloats);
  graph.clear_outputs();
  stream->Send(Define(1, graph), 1);
  stream->Send(Write(1, std::vector<float>(1, 0)), 2);  // refused: its size
  std::string zeros(4 * kFloats, '\0'), ones;
  for (int64_t i = 0; i < kFloats; ++i) ones.append("\0\0\x80\x3f", 4);
  ASSERT_TRUE(client.Upload("zeros", zeros).ok());
  ASSERT_TRUE(client.Upload("ones", ones).ok());
  stream->Send(WriteBlob(2, "zeros", kFloats), 3);
  stream->Send(WriteBlob(3, "ones", kFloats), 4);
  uint64_t next = 5;
  std::map<uint64_t, int> codes;
  for (int round = 0; round < 5; ++round) {
    const uint64_t first = next;
    for (int i = 0; i < 200; ++i) stream->Send(RunProgram(1, {2, 3}, {}), next++);
    stream->Send(CancelFrom(first), next++);
    stream->Send(RunProgram(1, {2, 3}, {}), next++);
    for (uint64_t run = first; run < next; ++run) codes[run] = stream->Answer(run).error().code();
    KillAndStart();
    stream = Reattach(address_, client, next - 1);
    ASSERT_NE(stream, nullptr);
  }
  int64_t runs = 0, cancelled = 0;
  for (const auto& [sequence, code] : codes) {
    (code == 0 ? runs : cancelled) += 1;
    EXPECT_TRUE(code == 0 || code == grpc::CANCELLED) << code;
  }
  runs -= 5;  // the Cancels
  EXPECT_GT(cancelled, 0);
  std::string sum;
  client.channel = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  client.blobs = v1::BlobService::NewStub(client.channel);
  ASSERT_TRUE(client.Download(2, next - 1, &sum).ok());
  EXPECT_EQ(Floats(sum), std::vector<float>(kFloats, static_cast<float>(runs)));
}

TEST_F(SnapshotTest, ImagesAreTakenAndSegmentsGo) {
  Start();
  Summer summer(address_, 1);
  const auto first = Files(".journal");
  ASSERT_THAT(first, SizeIs(1));
  for (int images = 0; images < 2; ++images) {
    summer.Step();
    ASSERT_TRUE(summer.Settle());
    const auto before = Files(".journal");
    ASSERT_TRUE(
        Comes([&] { return Files(".journal") != before && Files(".journal").size() == 1; }));
  }
  EXPECT_TRUE(IsProtected());
  KillAndStart();
  ASSERT_EQ(summer.Attach(), "");
  summer.ExpectRight();
}

TEST_F(SnapshotTest, AKillBetweenAnImageAndTheEndOfItsJournal) {
  Start();
  Summer summer(address_, 1);
  for (int i = 0; i < 20; ++i) summer.Step();
  ASSERT_TRUE(summer.Settle());
  // What is there keeps coming to these names as well.
  const fs::path image = Files(".session")[0], segment = Files(".journal")[0];
  const fs::path kept_image = folder_ + "/image", kept_segment = folder_ + "/segment";
  fs::create_hard_link(image, kept_image);
  fs::create_hard_link(segment, kept_segment);
  ASSERT_TRUE(Comes([&] { return !fs::exists(segment); }));
  for (int i = 0; i < 20; ++i) summer.Step();
  ASSERT_TRUE(summer.Settle());
  End(SIGKILL);
  const bool only_one = Files(".journal").size() == 1;
  const std::string new_image = BytesOf(image);
  const fs::path new_segment = Files(".journal")[0];
  const std::string new_segment_bytes = BytesOf(new_segment);
  if (only_one) {
    // Before the new image took the place of the old one.
    fs::copy_file(kept_image, image, fs::copy_options::overwrite_existing);
    fs::copy_file(kept_segment, segment);
    if (absl::EndsWith(new_segment.native(), ".2.journal")) {
      Start();
      ASSERT_EQ(summer.Attach(), "");
      summer.ExpectRight();
      End(SIGKILL);
    }
    // After it: the old segment is still there.
    for (const fs::path& each : Files(".journal")) fs::remove(each);
    Put(image, new_image);
    Put(new_segment, new_segment_bytes);
    fs::copy_file(kept_segment, segment);
  }
  Start();
  EXPECT_TRUE(Comes([&] { return !fs::exists(segment); }));
}

class DamagedTest : public SnapshotTest {
 protected:
  // Changes files of a session that was killed, and attaches again.
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

// What was being written when the daemon was killed had not been answered.
TEST_F(DamagedTest, ATornEndIsNothing) {
  for (const size_t more : {1, 15, 17, 40}) {
    EXPECT_EQ(After([&](const fs::path&, const fs::path& journal) {
                // The beginning of one more frame.
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
  // SIGINT ends everything.
  Summer summer(address_);
  summer.Step();
  ASSERT_TRUE(summer.Settle());
  End(SIGINT);
  EXPECT_THAT(Files(".session"), IsEmpty());
  EXPECT_THAT(Files(".journal"), IsEmpty());
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
  // Fills the disk that there is, and goes on.
  void Fill(Summer& summer) {
    const std::vector<float> floats(100'000, 1);
    for (int i = 0; i < 12; ++i) summer.Do(Write(summer.NewHandle(), floats));
    ASSERT_TRUE(summer.Settle());
    ASSERT_TRUE(Comes([&] { return absl::StrContains(Log(), "event=session_unprotected"); }));
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

// An image that is replaced does not count beside the new one.
TEST_F(SmallDiskTest, OneImageFitsAgainAndAgain) {
  config_ = "[quota]\ndisk = \"5MiB\"\n";
  Start();
  Summer summer(address_, 1);
  summer.Do(Write(summer.NewHandle(), std::vector<float>(500'000, 1)));  // 2 MB, and in the journal
  ASSERT_TRUE(summer.Settle());
  for (int images = 0; images < 3; ++images) {
    const auto before = Listed().snapshot_taken().SerializeAsString();
    ASSERT_TRUE(Comes([&] { return Listed().snapshot_taken().SerializeAsString() != before; }));
    summer.Step();
    ASSERT_TRUE(summer.Settle());
  }
  EXPECT_THAT(Log(), Not(HasSubstr("event=snapshot_failed")));
  KillAndStart();
  ASSERT_EQ(summer.Attach(), "");
  summer.ExpectRight();
}

TEST_F(SnapshotTest, WithoutAFolderItIsRefused) {
  // A file where the folder should be.
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
