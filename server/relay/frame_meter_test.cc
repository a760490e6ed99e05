#include "server/relay/frame_meter.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/relay/testing/frames.h"

namespace kiln::relay {
namespace {

using ::testing::ElementsAre;
using testing::FrameBytes;
using testing::kPreface;

// Passes all of `bytes`, in pieces of this size, and returns the types of the frames.
std::vector<int> Types(const std::string& bytes, size_t piece) {
  FrameMeter meter;
  std::vector<int> types;
  std::string waiting;
  for (size_t begin = 0; begin < bytes.size(); begin += piece) {
    waiting += bytes.substr(begin, piece);
    const auto passed = meter.Pass(waiting, [&](const Frame& frame) {
      types.push_back(frame.type);
      return true;
    });
    EXPECT_TRUE(passed.ok()) << passed.status();
    waiting.erase(0, *passed);
  }
  EXPECT_EQ(waiting, "");
  EXPECT_TRUE(meter.has_preface());
  return types;
}

TEST(FrameMeterTest, FindsFramesHoweverTheyArrive) {
  const std::string bytes =
      absl::StrCat(kPreface, FrameBytes(4, 0, 18), FrameBytes(Frame::kHeaders, 4, 40),
                   FrameBytes(Frame::kData, 0, 70'000), FrameBytes(Frame::kData, 1, 0),
                   FrameBytes(Frame::kReset, 0, 4));
  for (const size_t piece : {1, 2, 7, 9, 23, 64, 1'000'000})
    EXPECT_THAT(Types(bytes, piece), ElementsAre(4, 1, 0, 0, 3)) << piece;
}

TEST(FrameMeterTest, WhatIsNotAdmittedStaysBehind) {
  FrameMeter meter;
  const std::string first = absl::StrCat(kPreface, FrameBytes(4, 0, 0));
  const std::string call = FrameBytes(Frame::kHeaders, 4, 40);
  const auto is_no_call = [](const Frame& frame) { return !frame.BeginsCall(); };
  EXPECT_EQ(*meter.Pass(first + call, is_no_call), first.size());
  EXPECT_EQ(*meter.Pass(call, is_no_call), 0);
  EXPECT_EQ(*meter.Pass(call, [](const Frame&) { return true; }), call.size());
}

TEST(FrameMeterTest, AnotherProtocolIsRefusedAtItsFirstWrongByte) {
  for (const char* bytes : {"GET / HTTP/1.1\r\n", "\x16\x03\x01", "PRI * HTTP/1.1"}) {
    FrameMeter meter;
    EXPECT_EQ(meter.Pass(bytes, [](const Frame&) { return true; }).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bytes;
  }
}

// Headers without END_HEADERS: the header block of one call in more and more frames.
TEST(FrameMeterTest, HeadersHaveABound) {
  FrameMeter meter;
  const auto pass = [&](const std::string& bytes) {
    return meter.Pass(bytes, [](const Frame&) { return true; }).status();
  };
  ASSERT_TRUE(pass(std::string(kPreface)).ok());
  const auto all = FrameMeter::kHeaderBlockBytesMax;
  // The headers of each call are counted separately.
  for (int call = 0; call < 5; ++call) {
    EXPECT_TRUE(pass(FrameBytes(Frame::kHeaders, 0, all / 2)).ok());
    EXPECT_TRUE(pass(FrameBytes(Frame::kContinuation, 4, all / 2 - 18)).ok());
  }
  EXPECT_TRUE(pass(FrameBytes(Frame::kHeaders, 0, all / 2)).ok());
  EXPECT_EQ(pass(FrameBytes(Frame::kContinuation, 0, all / 2)).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(FrameMeterTest, EmptyFramesOfHeadersHaveABoundToo) {
  FrameMeter meter;
  std::string bytes = absl::StrCat(kPreface, FrameBytes(Frame::kHeaders, 0, 0));
  for (int64_t i = 0; i < FrameMeter::kHeaderBlockBytesMax / 9; ++i)
    bytes += FrameBytes(Frame::kContinuation, 0, 0);
  EXPECT_EQ(meter.Pass(bytes, [](const Frame&) { return true; }).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace kiln::relay
