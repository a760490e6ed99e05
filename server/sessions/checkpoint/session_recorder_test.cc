#include "server/sessions/checkpoint/session_recorder.h"

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/clock.h"
#include "server/sessions/checkpoint/store.h"
#include "server/sessions/checkpoint/writer.h"
#include "server/sessions/registry.h"
#include "server/testing/fake_device.h"

namespace kiln::sessions {
namespace {

TEST(SessionRecorder, CheckpointsThatFailLeaveFewFiles) {
  namespace fs = std::filesystem;
  metrics::Metrics metrics("test");
  buffers::BlobStore blobs(1000);
  runtime::ThreadPool copies(1);
  runtime::ManagedDevice device(std::make_unique<kiln::testing::FakeDevice>("cpu:0", 1 << 20), 0,
                                metrics.ForDevice("cpu:0"), SystemClock());
  runtime::ProgramCache::Options cache;
  cache.metrics = &metrics;
  cache.clock = SystemClock();
  runtime::ProgramCache programs(std::move(cache));
  std::string folder = "/tmp/kiln_session_XXXXXX";
  mkdtemp(folder.data());
  std::atomic<int64_t> limit = 0;  // none
  const auto store =
      CheckpointStore::Open({.folder = folder,
                             .limit_bytes = 1 << 30,
                             .user_limit_bytes = [&](const std::string&) { return limit.load(); },
                             .boot = "this one"});
  ASSERT_TRUE(store.ok()) << store.status();
  Registry::Options options;
  options.new_id = RandomId;
  options.sessions_max = 1;
  options.services = {&programs, &blobs, &metrics, &copies, SystemClock(), {}, {}};
  options.services.new_recorder = [&](SessionState& session) {
    return std::make_unique<SessionRecorder>(session, **store);
  };
  CheckpointWriter writer(absl::Minutes(1));
  writer.Stop();  // only its first checkpoint is wanted
  options.begin_checkpoints = [&](const auto& session) { writer.Begin(session); };
  Registry registry(std::move(options), std::vector{&device});
  const auto session = *registry.Open("ann", {}, absl::Seconds(10), "",
                                      fairness::Priority::kInteractive, absl::Hours(1));
  SessionRecorder& recorder = *RecorderOf(session->state());
  EXPECT_TRUE(recorder.HasCheckpoint());
  const auto files = [&] {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  };
  limit = 1;
  int64_t highest = 0;
  CopyDeadline deadline(absl::Minutes(1));
  for (int taken = 0; taken < 300; ++taken) {
    EXPECT_FALSE(recorder.Take(deadline).ok());
    highest = std::max<int64_t>(highest, files());
    EXPECT_EQ(recorder.HasCheckpoint(), taken < 256);
  }
  EXPECT_THAT(highest, ::testing::AllOf(::testing::Gt(250), ::testing::Lt(262)));
  limit = 0;
  EXPECT_TRUE(recorder.Take(deadline).ok());
  EXPECT_TRUE(recorder.HasCheckpoint());
  registry.CloseAll(absl::OkStatus());
  EXPECT_EQ(files(), 2);  // the lock and the key
  fs::remove_all(folder);
}

}  // namespace
}  // namespace kiln::sessions
