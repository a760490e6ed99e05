#include "compiler/workers/message.h"

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "compiler/workers/channel.h"
#include "compiler/workers/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::workers {
namespace {

KernelJob SomeJob() {
  KernelJob job;
  job.name = "add_64";
  job.kernel = std::string("loops\0with anything\n", 20);
  job.schedule = "split 0 8";
  job.target.architecture = "x86-64";
  job.target.processor = "haswell";
  job.target.features = "+avx2";
  job.target.variant = "avx2";
  job.target.limits.vector_bytes = 32;
  job.target.capabilities.fma = true;
  job.target.costs.contraction.step = 7.5;
  job.target.rates.launch_seconds = 0.25;
  job.target.finisher = {"opencl", "a GPU", "1.0"};
  return job;
}

drivers::KernelImage SomeImage() {
  drivers::KernelImage image;
  image.name = "add_64";
  image.architecture = "x86-64";
  image.code = std::string(1000, 'c');
  image.grid_size = 12;
  return image;
}

TEST(Message, JobsArriveWhole) {
  uint64_t number = 0;
  KernelJob got;
  ASSERT_TRUE(DecodeJob(EncodeJob(7, SomeJob()), &number, &got));
  EXPECT_EQ(number, 7);
  EXPECT_EQ(got.name, "add_64");
  EXPECT_EQ(got.kernel, SomeJob().kernel);
  EXPECT_EQ(got.schedule, "split 0 8");
  EXPECT_EQ(got.target.CacheKey(), SomeJob().target.CacheKey());
  EXPECT_EQ(got.target.Summary(), "x86-64/avx2");
  EXPECT_EQ(got.target.rates.launch_seconds, 0.25);
  EXPECT_EQ(got.target.finisher.driver, "opencl");
  EXPECT_FALSE(got.unfinished.has_value());
}

TEST(Message, JobsBringDecisionsToRehearse) {
  KernelJob job = SomeJob();
  uint64_t number = 0;
  KernelJob got;
  for (const std::vector<std::string>& passes :
       {std::vector<std::string>(), std::vector<std::string>{"merge_rows", "normalize"}}) {
    job.rehearsal = {.graph = "input 0",
                     .key = "graph 1\n",
                     .choices = "",
                     .disabled_passes = passes,
                     .setting = std::string("any\0thing", 9)};
    ASSERT_TRUE(DecodeJob(EncodeJob(8, job), &number, &got));
    ASSERT_TRUE(got.rehearsal.has_value());
    EXPECT_EQ(got.rehearsal->graph, "input 0");
    EXPECT_EQ(got.rehearsal->key, "graph 1\n");
    EXPECT_EQ(got.rehearsal->choices, "");
    EXPECT_EQ(got.rehearsal->disabled_passes, passes);
    EXPECT_EQ(got.rehearsal->setting, job.rehearsal->setting);
    EXPECT_FALSE(got.unfinished.has_value());
  }
  const std::string bytes = EncodeJob(8, job);
  EXPECT_FALSE(DecodeJob(bytes.substr(0, bytes.size() - 1), &number, &got));
}

TEST(Message, JobsBringTheImagesThatAreToBeFinished) {
  KernelJob job = SomeJob();
  job.unfinished = SomeImage();
  uint64_t number = 0;
  KernelJob got;
  ASSERT_TRUE(DecodeJob(EncodeJob(7, job), &number, &got));
  ASSERT_TRUE(got.unfinished.has_value());
  EXPECT_EQ(got.unfinished->Serialize(), SomeImage().Serialize());
}

TEST(Message, ImagesArriveWhole) {
  absl::StatusOr<drivers::KernelImage> got = absl::UnknownError("none");
  ASSERT_TRUE(DecodeAnswer(EncodeAnswer(9, SomeImage()), 9, SomeJob(), &got));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->Serialize(), SomeImage().Serialize());
}

TEST(Message, ErrorsKeepCodeMessageAndPayloads) {
  absl::Status error = absl::InternalError("the loops are not the kernel");
  error.SetPayload("kiln.disproof", absl::Cord());
  error.SetPayload("kiln/reason", absl::Cord("WRONG"));
  absl::StatusOr<drivers::KernelImage> got = SomeImage();
  ASSERT_TRUE(DecodeAnswer(EncodeAnswer(9, error), 9, SomeJob(), &got));
  EXPECT_EQ(got.status(), error);
}

TEST(Message, AnythingElseIsRefused) {
  const std::string answer = EncodeAnswer(9, SomeImage());
  const std::string error = EncodeAnswer(9, absl::InternalError("no"));
  absl::StatusOr<drivers::KernelImage> got = absl::UnknownError("none");
  for (size_t size = 0; size < answer.size(); ++size)
    EXPECT_FALSE(DecodeAnswer(answer.substr(0, size), 9, SomeJob(), &got)) << size;
  for (size_t size = 0; size < error.size(); ++size)
    EXPECT_FALSE(DecodeAnswer(error.substr(0, size), 9, SomeJob(), &got)) << size;
  EXPECT_FALSE(DecodeAnswer(answer + "x", 9, SomeJob(), &got));
  // An answer to another job.
  EXPECT_FALSE(DecodeAnswer(answer, 10, SomeJob(), &got));
  KernelJob other = SomeJob();
  other.name = "mul_64";
  EXPECT_FALSE(DecodeAnswer(answer, 9, other, &got));
  other = SomeJob();
  other.target.architecture = "null";
  EXPECT_FALSE(DecodeAnswer(answer, 9, other, &got));
  EXPECT_EQ(got.status(), absl::UnknownError("none"));
}

class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    here_ = Descriptor(sockets[0]);
    there_ = Descriptor(sockets[1]);
  }
  static Deadline Soon() {
    return Deadline(std::chrono::steady_clock::now, std::chrono::milliseconds(20));
  }

  Descriptor here_, there_;
  std::string received_;
};

TEST_F(ChannelTest, MessagesOfAnySize) {
  // The second message is larger than the socket's buffer.
  for (const size_t size : {size_t{0}, size_t{1} << 23}) {
    const std::string message(size, 'm');
    std::thread sender(
        [&] { EXPECT_EQ(Send(there_.get(), message, Deadline()), Transfer::kDone); });
    EXPECT_EQ(Receive(here_.get(), &received_, Deadline()), Transfer::kDone);
    sender.join();
    EXPECT_EQ(received_, message);
  }
}

TEST_F(ChannelTest, DeadlinesHoldInTheMiddleOfAMessage) {
  EXPECT_EQ(Receive(here_.get(), &received_, Soon()), Transfer::kLate);
  EXPECT_EQ(Send(here_.get(), std::string(1 << 23, 'm'), Soon()), Transfer::kLate);
  EXPECT_EQ(Receive(there_.get(), &received_, Soon()), Transfer::kLate);
}

TEST_F(ChannelTest, AClosedSocketIsNoSignal) {
  there_ = Descriptor();
  { Descriptor closed = std::move(there_); }
  EXPECT_EQ(Send(here_.get(), "message", Deadline()), Transfer::kClosed);
  EXPECT_EQ(Receive(here_.get(), &received_, Deadline()), Transfer::kClosed);
}

TEST_F(ChannelTest, SizesAreBounded) {
  const uint64_t size = kMessageBytesMax + 1;
  ASSERT_EQ(send(there_.get(), &size, sizeof size, 0), static_cast<ssize_t>(sizeof size));
  EXPECT_EQ(Receive(here_.get(), &received_, Deadline()), Transfer::kTooLong);
}

}  // namespace
}  // namespace kiln::workers
