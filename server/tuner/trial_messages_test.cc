#include "server/tuner/trial_messages.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/coding/coding.h"

namespace kiln::tuner {
namespace {

using kernel::Sample;
using ::testing::ElementsAre;

template <typename Request>
Request RoundTrip(const Request& request) {
  uint64_t number = 0;
  TrialRequest decoded;
  const std::string bytes = EncodeRequest(77, request);
  EXPECT_TRUE(DecodeRequest(bytes, &number, &decoded));
  EXPECT_EQ(number, 77u);
  // Neither a part nor more than a request is one.
  for (size_t size = 0; size < bytes.size(); ++size) {
    TrialRequest part;
    EXPECT_FALSE(DecodeRequest(bytes.substr(0, size), &number, &part)) << size;
  }
  TrialRequest more;
  EXPECT_FALSE(DecodeRequest(bytes + '\0', &number, &more));
  return std::get<Request>(decoded);
}

bool IsRequest(const TrialRequest& request) {
  uint64_t number = 0;
  TrialRequest decoded;
  return DecodeRequest(EncodeRequest(1, request), &number, &decoded);
}

TEST(TrialMessages, RequestsArriveAsTheyWereSent) {
  const OpenRequest open = RoundTrip(OpenRequest{"text", "hardware", 5, uint64_t{1} << 40});
  EXPECT_EQ(open.kernel, "text");
  EXPECT_EQ(open.hardware, "hardware");
  EXPECT_EQ(open.seed, 5u);
  EXPECT_EQ(open.memory_bytes_max, uint64_t{1} << 40);
  EXPECT_EQ(RoundTrip(PrepareRequest{{Sample::kOdd}}).inputs, Inputs{Sample::kOdd});
  drivers::KernelImage image;
  image.name = "name";
  image.code = "code";
  image.num_arguments = 3;
  const LoadRequest load = RoundTrip(LoadRequest{9, {7, 300}, {{image, {0, 1, 4}}, {image, {}}}});
  EXPECT_EQ(load.trial, 9u);
  EXPECT_THAT(load.unloaded, ElementsAre(7, 300));
  ASSERT_EQ(load.steps.size(), 2u);
  EXPECT_EQ(load.steps[0].image.Serialize(), image.Serialize());
  EXPECT_THAT(load.steps[0].arguments, ElementsAre(0, 1, 4));
  EXPECT_THAT(load.steps[1].arguments, ElementsAre());
  const TimeRequest time = RoundTrip(TimeRequest{9, 1000, 0.25});
  EXPECT_EQ(time.trial, 9u);
  EXPECT_EQ(time.times, 1000);
  EXPECT_EQ(time.seconds_max, 0.25);
  const RunRequest run = RoundTrip(RunRequest{9, {Sample::kEqual, 0.5, 6}, 3});
  EXPECT_EQ(run.trial, 9u);
  EXPECT_EQ(run.inputs, (Inputs{Sample::kEqual, 0.5, 6}));
  EXPECT_EQ(run.seconds_max, 3);
}

TEST(TrialMessages, RefusesValuesThatMakeNoSense) {
  EXPECT_TRUE(IsRequest(TimeRequest{1, kTimesMax, 1}));
  EXPECT_FALSE(IsRequest(TimeRequest{1, kTimesMax + 1, 1}));
  EXPECT_FALSE(IsRequest(TimeRequest{1, 0, 1}));
  EXPECT_FALSE(IsRequest(TimeRequest{1, 1, -1}));
  EXPECT_FALSE(IsRequest(TimeRequest{1, 1, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_FALSE(IsRequest(RunRequest{1, {static_cast<Sample>(99)}, 1}));
  EXPECT_TRUE(IsRequest(RunRequest{1, {Sample::kOdd, 0.5, 2}, 1}));
  EXPECT_FALSE(IsRequest(RunRequest{1, {Sample::kOdd, 1, 2}, 1}));
  EXPECT_FALSE(IsRequest(RunRequest{1, {Sample::kOdd, -0.5, 2}, 1}));
  EXPECT_FALSE(IsRequest(RunRequest{1, {Sample::kOdd, std::nan("")}, 1}));
  EXPECT_FALSE(IsRequest(RunRequest{1, {Sample::kOdd}, std::numeric_limits<double>::infinity()}));
  ByteWriter out;
  out.Fixed64(1);
  out.Number(std::variant_size_v<TrialRequest>);
  uint64_t number = 0;
  TrialRequest request;
  EXPECT_FALSE(DecodeRequest(out.Take(), &number, &request));
  // An image that is none.
  ByteWriter load;
  load.Fixed64(1);
  load.Number(2);
  load.Number(1);
  load.Number(0);
  load.Number(1);
  load.Field("no image");
  load.Number(0);
  EXPECT_FALSE(DecodeRequest(load.Take(), &number, &request));
}

TEST(TrialMessages, AnswersArriveAsTheyWereSent) {
  absl::StatusOr<double> answer = absl::UnknownError("none");
  ASSERT_TRUE(DecodeTrialAnswer(EncodeTrialAnswer(3, 0.5), 3, &answer));
  EXPECT_EQ(answer.value(), 0.5);
  absl::Status error = absl::DataLossError("stray");
  error.SetPayload("kiln.test", absl::Cord("payload"));
  ASSERT_TRUE(DecodeTrialAnswer(EncodeTrialAnswer(3, error), 3, &answer));
  EXPECT_EQ(answer.status(), error);
}

TEST(TrialMessages, RefusesOtherAnswers) {
  absl::StatusOr<double> answer = 7.0;
  EXPECT_FALSE(DecodeTrialAnswer(EncodeTrialAnswer(4, 0.5), 3, &answer));
  EXPECT_FALSE(DecodeTrialAnswer(EncodeTrialAnswer(3, -1.0), 3, &answer));
  EXPECT_FALSE(DecodeTrialAnswer(EncodeTrialAnswer(3, std::numeric_limits<double>::quiet_NaN()), 3,
                                 &answer));
  EXPECT_FALSE(DecodeTrialAnswer(EncodeTrialAnswer(3, 0.5) + "x", 3, &answer));
  const std::string bytes = EncodeTrialAnswer(3, 0.5);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeTrialAnswer(bytes.substr(0, size), 3, &answer)) << size;
  EXPECT_EQ(answer.value(), 7);
}

}  // namespace
}  // namespace kiln::tuner
