// Uploads and downloads of bulk data.
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/client.h"
#include "tests/server/test_daemon.h"

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The blob "2nd!", named by its SHA-256.
constexpr char kSecondBlob[] =
    "sha256:5b0c7775c4d647a4d5ffc0ecaf628c23e251e8d91881da8586cbebc1ae8db725";

std::vector<std::string> Found(const Client& client, const std::vector<std::string>& blobs,
                               uint64_t after_sequence = 0) {
  grpc::ClientContext context;
  v1::FindBlobsRequest request;
  request.set_session_id(client.session.session_id());
  *request.mutable_blobs() = {blobs.begin(), blobs.end()};
  request.set_after_sequence(after_sequence);
  v1::FindBlobsResponse response;
  EXPECT_TRUE(client.blobs->FindBlobs(&context, request, &response).ok());
  return {response.found().begin(), response.found().end()};
}

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

TEST(Blob, UploadWriteRunDownload) {
  TestDaemonOptions options;
  options.memory_bytes = 64 << 20;
  options.blob_limit_bytes = 32 << 20;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  // Two chunks, the last one partly filled.
  std::vector<float> values(300'000);
  std::iota(values.begin(), values.end(), 0.0f);
  const grpc::Status uploaded = client.Upload("data", Bytes(values));
  ASSERT_TRUE(uploaded.ok()) << uploaded.error_message();
  auto stream = client.Connect();
  stream->Send(Define(1, AddGraph(300'000)));
  stream->Send(WriteBlob(1, "data", 300'000));
  const auto run = stream->Send(RunProgram(1, {1, 1}, {2}));
  std::string data;
  const grpc::Status downloaded = client.Download(2, run, &data);
  ASSERT_TRUE(downloaded.ok()) << downloaded.error_message();
  std::vector<float> doubled = values;
  for (float& value : doubled) value *= 2;
  EXPECT_EQ(Floats(data), doubled);
}

// Values without a host pointer are transferred by the device's copies.
TEST(Blob, MemoryThatTheHostDoesNotHave) {
  TestDaemonOptions options;
  options.memory_bytes = 64 << 20;
  options.blob_limit_bytes = 32 << 20;
  TestDaemon daemon(std::move(options));
  daemon.device().HideMemory();
  Client client(daemon.address());
  std::vector<float> values(600'000);
  std::iota(values.begin(), values.end(), 0.0f);
  ASSERT_TRUE(client.Upload("data", Bytes(values)).ok());
  auto stream = client.Connect();
  stream->Send(Define(1, AddGraph(600'000)));
  stream->Send(WriteBlob(1, "data", 600'000));
  const auto run = stream->Send(RunProgram(1, {1, 1}, {2}));
  std::vector<float> doubled = values;
  for (float& value : doubled) value *= 2;
  std::string data;
  EXPECT_TRUE(client.Download(2, run, &data).ok());
  EXPECT_TRUE(Floats(data) == doubled);
  stream->Send(Write(3, {5, 6}));
  EXPECT_THAT(Floats(stream->Call(Read(3)).data()), ElementsAre(5, 6));
  daemon.device().Break("fell off the bus");
  EXPECT_EQ(Reason(client.Download(2, run, &data)), "DEVICE_FAILED");
  EXPECT_EQ(Reason(stream->Call(Read(3)).error()), "DEVICE_FAILED");
}

TEST(Blob, RunsThatWaitForAnUploadHoldUpNobodyElse) {
  TestDaemon daemon;
  daemon.device().HideMemory();
  Client client(daemon.address());
  Client neighbour(daemon.address());
  auto beside = neighbour.Connect();
  beside->Send(Define(1, AddGraph(2)));
  ASSERT_FALSE(beside->Call(Write(1, {1, 2})).has_error());
  auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(Define(1, AddGraph(2))).has_error());
  daemon.device().HoldCopies();
  stream->Send(Write(1, {5, 6}));
  stream->Send(RunProgram(1, {1, 1}, {2}));
  const auto chained = stream->Send(RunProgram(1, {2, 2}, {3}));
  EXPECT_FALSE(beside->Call(RunProgram(1, {1, 1}, {2})).has_error());
  EXPECT_EQ(daemon.device().lists_run(), 1) << "a run did not wait for its input";
  daemon.device().LetCopiesGo();
  EXPECT_FALSE(stream->Answer(chained).has_error());
  EXPECT_THAT(Floats(stream->Call(Read(3)).data()), ElementsAre(20, 24));
}

TEST(Blob, DownloadWaitsForItsOperation) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  stream->Call(Define(1, AddGraph(1)));
  stream->Call(Write(1, {3}));
  daemon.device().Hold();
  const auto run = stream->Send(RunProgram(1, {1, 1}, {2}));
  std::atomic<bool> let_go{false};
  std::thread release([&] {
    stream->Call(Write(3, {1}));  // after the run, which is waiting
    let_go = true;
    daemon.device().LetGo();
  });
  std::string data;
  EXPECT_TRUE(client.Download(2, run, &data).ok());
  EXPECT_TRUE(let_go);
  release.join();
  EXPECT_THAT(Floats(data), ElementsAre(6));
  EXPECT_EQ(client.Download(77, run, &data).error_code(), grpc::NOT_FOUND);
  data.clear();
  EXPECT_TRUE(client.Download(1, 0, &data).ok());
  EXPECT_THAT(Floats(data), ElementsAre(3));
}

TEST(Blob, AWrongDigestIsNeverThere) {
  TestDaemon daemon;
  Client client(daemon.address());
  Client other(daemon.address());
  ASSERT_TRUE(client.Upload(kFirstBlob, "2nd!").ok());
  EXPECT_THAT(Found(client, {kFirstBlob}), IsEmpty());
  EXPECT_THAT(Found(other, {kFirstBlob}), IsEmpty());
  const auto stream = other.Connect();
  EXPECT_EQ(Reason(stream->Call(WriteBlob(1, kFirstBlob, 1)).error()), "UNKNOWN_BLOB");
  ASSERT_TRUE(client.Upload(kFirstBlob, "1st!").ok());
  EXPECT_THAT(Found(other, {kFirstBlob, kSecondBlob}), ElementsAre(kFirstBlob));
  ASSERT_FALSE(stream->Call(WriteBlob(2, kFirstBlob, 1)).has_error());
  EXPECT_EQ(stream->Call(Read(2)).data(), "1st!");
}

TEST(Blob, UnverifiedBytesAreTheirSessionsOwn) {
  TestDaemon daemon;
  Client client(daemon.address());
  Client other(daemon.address());
  ASSERT_TRUE(client.Upload(kFirstBlob, "1st!").ok());
  ASSERT_TRUE(other.Upload(kSecondBlob, "oops").ok());
  // Neither digest was asked for with FindBlobs.
  const auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(WriteBlob(1, kFirstBlob, 1)).has_error());
  EXPECT_EQ(stream->Call(Read(1)).data(), "1st!");
  EXPECT_EQ(Reason(stream->Call(WriteBlob(2, kSecondBlob, 1)).error()), "UNKNOWN_BLOB");
  const auto beside = other.Connect();
  ASSERT_FALSE(beside->Call(WriteBlob(1, kSecondBlob, 1)).has_error());
  EXPECT_EQ(beside->Call(Read(1)).data(), "oops");
  EXPECT_EQ(Reason(beside->Call(WriteBlob(2, kFirstBlob, 1)).error()), "UNKNOWN_BLOB");
  EXPECT_THAT(Found(other, {kFirstBlob, kSecondBlob}), ElementsAre(kFirstBlob));
  ASSERT_FALSE(beside->Call(WriteBlob(3, kFirstBlob, 1)).has_error());
}

// New data needs no digest; data that may be there is found by its digest.
TEST(Blob, SumsSayWhatMayBeThere) {
  TestDaemon daemon;
  Client client(daemon.address());
  Client other(daemon.address());
  const std::string sum = "sum64:0000000021747331";  // of "1st!"
  const std::string mine = sum + ":mine";
  const std::string both = sum + ":" + kFirstBlob;
  EXPECT_THAT(Found(client, {sum, both}), IsEmpty());
  ASSERT_TRUE(client.Upload(mine, "1st!").ok());
  EXPECT_THAT(Found(other, {sum, mine, sum + ":" + kSecondBlob}), ElementsAre(sum));
  EXPECT_THAT(Found(other, {both}), ElementsAre(both));
  const auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(WriteBlob(1, mine, 1)).has_error());
  EXPECT_EQ(stream->Call(Read(1)).data(), "1st!");
  const auto beside = other.Connect();
  EXPECT_EQ(Reason(beside->Call(WriteBlob(1, mine, 1)).error()), "UNKNOWN_BLOB");
  EXPECT_EQ(Reason(beside->Call(WriteBlob(2, sum, 1)).error()), "UNKNOWN_BLOB");
  ASSERT_FALSE(beside->Call(WriteBlob(3, both, 1)).has_error());
  EXPECT_EQ(beside->Call(Read(3)).data(), "1st!");
  EXPECT_EQ(Reason(client.Upload(sum, "1st!")), "BAD_BLOB_NAME");
}

// A client asks for a blob that an operation sent earlier still has to use.
TEST(Blob, WhatWasFoundStaysUntilALaterWriteHasUsedIt) {
  TestDaemonOptions options;
  options.blob_limit_bytes = 10;
  TestDaemon daemon(std::move(options));
  Client client(daemon.address());
  const auto stream = client.Connect();
  ASSERT_TRUE(client.Upload(kFirstBlob, "1st!").ok());
  EXPECT_THAT(Found(client, {kFirstBlob}, /*after_sequence=*/1), ElementsAre(kFirstBlob));
  ASSERT_EQ(stream->Send(WriteBlob(1, kFirstBlob, 1)), 1);
  ASSERT_FALSE(stream->Answer(1).has_error());
  EXPECT_EQ(Reason(client.Upload("large", "12345678")), "BLOB_LIMIT");
  ASSERT_FALSE(stream->Call(WriteBlob(2, kFirstBlob, 1)).has_error());
  EXPECT_TRUE(client.Upload("large", "12345678").ok());
  EXPECT_THAT(Found(client, {kFirstBlob}), IsEmpty());
}

TEST(Blob, OneValueFromSeveralBlobs) {
  TestDaemon daemon;
  Client client(daemon.address());
  const auto bytes = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  // Boundaries of blobs need not be boundaries of elements.
  const std::string all = bytes({1, 2, 3, 4});
  ASSERT_TRUE(client.Upload("a", all.substr(0, 5)).ok());
  ASSERT_TRUE(client.Upload("b", all.substr(5)).ok());
  const auto stream = client.Connect();
  ASSERT_FALSE(stream->Call(WritePieces(1, {"a", "b"}, 4)).has_error());
  EXPECT_EQ(Floats(stream->Call(Read(1)).data()), std::vector<float>({1, 2, 3, 4}));
  EXPECT_EQ(Reason(stream->Call(WritePieces(2, {"a", "x", "b"}, 4)).error()), "UNKNOWN_BLOB");
  EXPECT_EQ(Reason(stream->Call(WritePieces(3, {"a"}, 4)).error()), "SIZE_MISMATCH");
  EXPECT_EQ(Reason(stream->Call(WritePieces(5, std::vector<std::string>(1 << 17, "b"), 4)).error()),
            "TOO_MANY_PIECES");
  const v1::Result often = stream->Call(WritePieces(4, std::vector<std::string>(50'000, "b"), 4));
  EXPECT_EQ(Reason(often.error()), "SIZE_MISMATCH");
  EXPECT_THAT(often.error().message(), HasSubstr("takes 16 bytes, but 22 or more were sent"));
}

TEST(Blob, Refusals) {
  TestDaemon daemon;
  Client client(daemon.address());
  EXPECT_EQ(client.Upload("a:b", "x").error_code(), grpc::INVALID_ARGUMENT);
  const grpc::Status full = client.Upload("big", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(full.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(full.error_message(),
              HasSubstr("larger than the limit for all blobs (1048576 bytes)"));
  client.session.set_session_id("nobody");
  EXPECT_EQ(client.Upload("a", "x").error_code(), grpc::NOT_FOUND);
  std::string data;
  EXPECT_EQ(client.Download(1, 0, &data).error_code(), grpc::NOT_FOUND);
}

TEST(Blob, AThousandUploadsLeaveNothing) {
  TestDaemon daemon;
  Client client(daemon.address());
  auto stream = client.Connect();
  std::vector<v1::ConnectRequest> sent;
  const auto send = [&](v1::ConnectRequest request) {
    sent.push_back(request);
    stream->Send(std::move(request), sent.size());
  };
  for (uint64_t i = 1; i <= 1000; ++i) {
    const std::string name = absl::StrCat("upload-", i);
    ASSERT_TRUE(client.Upload(name, std::string(4000, 'x')).ok());
    send(WriteBlob(i, name, 1000));
    v1::ConnectRequest release = Release({i});
    release.mutable_release()->add_blobs(name);
    send(release);
    // The connection may break at any moment; a repeated operation takes effect once.
    if (i % 100 != 0) continue;
    stream->Drop();
    stream = client.Connect();
    for (uint64_t missing = stream->last_sequence() + 1; missing <= sent.size(); ++missing)
      stream->Send(sent[missing - 1], missing);
  }
  stream->set_next_sequence(sent.size() + 1);
  EXPECT_FALSE(stream->Call(Barrier()).has_error());
  EXPECT_TRUE(Eventually([&] { return daemon.device().allocated_bytes() == 0; }));
  const std::string metrics = daemon.daemon().MetricsText();
  EXPECT_NE(metrics.find("kiln_blob_bytes 0\n"), std::string::npos);
}

// Returns the resident memory of this process, which includes the daemon.
int64_t Resident() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Blobs smaller than a block are in memory that the C library keeps after it is freed.
TEST(Blob, FreedMemoryGoesBackToTheSystem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  constexpr int kBlobs = 200, kBytes = 1'900'000;
  constexpr int64_t kAll = int64_t{kBlobs} * kBytes;
  TestDaemonOptions options;
  options.blob_limit_bytes = 2 * kAll;
  options.configure = [](config::Config& config) { config.host_memory_limit_bytes = 4 * kAll; };
  TestDaemon daemon(std::move(options));
  Client client(daemon.address()), other(daemon.address());
  const auto training = other.Connect();
  const std::string data(kBytes, 'x');
  ASSERT_TRUE(client.Upload("first", data).ok());
  const int64_t before = Resident();
  for (int i = 0; i < kBlobs; ++i) ASSERT_TRUE(client.Upload(absl::StrCat("blob", i), data).ok());
  EXPECT_GT(Resident(), before + kAll / 2);
  grpc::ClientContext context;
  v1::CloseSessionRequest request;
  request.set_session_id(client.session.session_id());
  v1::CloseSessionResponse response;
  ASSERT_TRUE(client.sessions->CloseSession(&context, request, &response).ok());
  // The memory is kept for the next upload for a while.
  daemon.Advance(absl::Seconds(11));
  daemon.Advance(absl::Seconds(11));
  EXPECT_TRUE(Eventually([&] { return Resident() < before + kAll / 8; })) << Resident() - before;
  EXPECT_FALSE(training->Call(Write(1, {1})).has_error());
}

// Freed memory of gRPC is in no account of the daemon. The C library keeps it because of what lies
// between.
TEST(Blob, FreedMemoryOfNoAccountGoesBackToTheSystem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  constexpr int kPieces = 100'000;
  constexpr size_t kBytes = 1'000;
  constexpr int64_t kAll = int64_t{kPieces} * kBytes;
  TestDaemon daemon;
  // Free memory of earlier tests is resident, and would be used again.
  malloc_trim(0);
  daemon.Advance(absl::Seconds(11));
  const int64_t before = Resident();
  std::vector<std::string> pieces;
  for (int i = 0; i < kPieces; ++i) pieces.emplace_back(kBytes, 'x');
  EXPECT_GT(Resident(), before + kAll / 2);
  for (int i = 0; i < kPieces; ++i) {
    if (i % 1'000 != 0) std::string().swap(pieces[i]);
  }
  daemon.Advance(absl::Seconds(11));
  EXPECT_TRUE(Eventually([&] { return Resident() < before + kAll / 4; })) << Resident() - before;
}

TEST(Blob, EndsWithItsSession) {
  TestDaemon daemon;
  Client client(daemon.address(), /*lease_seconds=*/10);
  ASSERT_TRUE(client.Upload("data", std::string(1000, 'x')).ok());
  EXPECT_THAT(daemon.daemon().MetricsText(), HasSubstr("kiln_blob_bytes 1000"));
  daemon.Advance(absl::Seconds(11));
  EXPECT_TRUE(Eventually([&] {
    return daemon.daemon().MetricsText().find("kiln_blob_bytes 0") != std::string::npos;
  }));
}

}  // namespace
}  // namespace kiln::testing
