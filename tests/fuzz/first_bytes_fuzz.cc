// Fuzzes the readers of an unauthenticated client's first bytes: the relay's meter of HTTP/2
// frames, which must find the same frames for every way in which the bytes arrive and frames are
// admitted late, and the reader of requests for metrics.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/relay/frame_meter.h"
#include "server/relay/testing/frames.h"
#include "server/scrape/http.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {
namespace {

using relay::Frame;
using relay::FrameMeter;
using relay::testing::FrameBytes;

constexpr int kConversations = 64;
constexpr size_t kHeaderBytes = 9;

std::string RandomFrame(Random& random) {
  constexpr uint8_t kTypes[] = {
      Frame::kData, Frame::kHeaders, Frame::kReset, Frame::kContinuation, 4, 6, 8, 0xff};
  const size_t payload = OneIn(random, 16) ? Below(random, 40'000) : Below(random, 64);
  return FrameBytes(kTypes[Below(random, std::size(kTypes))], OneIn(random, 2) ? 4 : 0, payload);
}

std::vector<std::string> MakeConversations() {
  std::vector<std::string> all;
  for (Random random(2026); all.size() < kConversations;) {
    std::string bytes(relay::testing::kPreface);
    for (size_t frames = Below(random, 12); frames > 0; --frames) bytes += RandomFrame(random);
    all.push_back(std::move(bytes));
  }
  return all;
}

// The result of a reader that has all bytes at once: "type:flags:payload" of each frame whose
// header is complete, and why it stops.
struct Conversation {
  std::vector<std::string> frames;
  absl::StatusCode end = absl::StatusCode::kOk;
  size_t bytes = 0;  // that are admitted
};

std::string Label(const Frame& frame) {
  return absl::StrCat(frame.type, ":", frame.flags, ":", frame.payload_bytes);
}

Conversation ReadWhole(absl::string_view bytes) {
  const absl::string_view preface = relay::testing::kPreface;
  Conversation read;
  read.bytes = std::min(bytes.size(), preface.size());
  if (bytes.substr(0, read.bytes) != preface.substr(0, read.bytes)) {
    read.end = absl::StatusCode::kInvalidArgument;
    return read;
  }
  int64_t block = 0;
  while (read.bytes + kHeaderBytes <= bytes.size()) {
    const auto* header = reinterpret_cast<const uint8_t*>(bytes.data()) + read.bytes;
    const Frame frame = {.type = header[3],
                         .flags = header[4],
                         .payload_bytes = header[0] * 65536u + header[1] * 256u + header[2]};
    read.frames.push_back(Label(frame));
    if (frame.type == Frame::kHeaders) block = 0;
    if (frame.type == Frame::kHeaders || frame.type == Frame::kContinuation) {
      block += frame.payload_bytes + static_cast<int64_t>(kHeaderBytes);
      if (block > FrameMeter::kHeaderBlockBytesMax) {
        read.end = absl::StatusCode::kResourceExhausted;
        return read;
      }
      if ((frame.flags & 4) != 0) block = 0;
    }
    read.bytes = std::min(bytes.size(), read.bytes + kHeaderBytes + frame.payload_bytes);
  }
  return read;
}

// The same through a meter, in pieces; frames are sometimes refused at first.
Conversation ReadInPieces(Random& random, absl::string_view bytes) {
  FrameMeter meter;
  Conversation read;
  std::string waiting;
  const auto admit = [&](const Frame& frame) {
    if (OneIn(random, 4)) return false;
    read.frames.push_back(Label(frame));
    return true;
  };
  size_t fed = 0;
  // A waiting frame is refused this often in a row about once in 10^19.
  for (int idle = 0; idle < 32;) {
    const size_t piece_max = OneIn(random, 4) ? 4000 : 12;
    const size_t piece = std::min(bytes.size() - fed, 1 + Below(random, piece_max));
    absl::StrAppend(&waiting, bytes.substr(fed, piece));
    fed += piece;
    const auto passed = meter.Pass(waiting, admit);
    read.end = passed.status().code();
    if (!passed.ok()) return read;
    waiting.erase(0, *passed);
    read.bytes += *passed;
    idle = fed == bytes.size() && *passed == 0 ? idle + 1 : 0;
  }
  return read;
}

Outcome TryFrames(Random& random) {
  static const std::vector<std::string>& corpus =
      *new std::vector<std::string>(MakeConversations());
  std::string bytes = corpus[Below(random, corpus.size())];
  if (!OneIn(random, 4)) bytes = MutateBytes(random, bytes, corpus[Below(random, corpus.size())]);
  const Conversation whole = ReadWhole(bytes), pieces = ReadInPieces(random, bytes);
  if (pieces.end != whole.end || pieces.frames != whole.frames)
    return {"accepted", "the frames found depend on how the bytes arrive"};
  if (whole.end != absl::StatusCode::kOk) return {"refused", {}};
  if (pieces.bytes != whole.bytes) return {"accepted", "bytes stay behind that may pass"};
  return {"accepted", {}};
}

std::string RandomRequest(Random& random) {
  constexpr const char* kLines[] = {"GET /metrics HTTP/1.1",
                                    "HEAD /metrics?name[]=kiln_up HTTP/1.0", "POST / HTTP/1.1",
                                    "GET /a//../%2e?x?y HTTP/1.1"};
  constexpr const char* kFields[] = {"Host: box:9100",
                                     "Accept: text/plain;version=0.0.4",
                                     "Authorization: Basic dXNlcjpzZWNyZXQ=",
                                     "authorization:basic  OnNlY3JldA==",
                                     "Authorization: Bearer secret",
                                     "X"};
  std::string text = kLines[Below(random, std::size(kLines))];
  for (size_t fields = Below(random, 5); fields > 0; --fields)
    absl::StrAppend(&text, "\r\n", kFields[Below(random, std::size(kFields))]);
  return text + "\r\n\r\n";
}

bool Equal(const scrape::Request& a, const scrape::Request& b) {
  return a.method == b.method && a.path == b.path && a.query == b.query &&
         a.password == b.password && a.authorization == b.authorization && a.host == b.host &&
         a.fetch_site == b.fetch_site;
}

Outcome TryRequest(Random& random) {
  std::string text = RandomRequest(random);
  if (!OneIn(random, 4)) text = MutateBytes(random, text, RandomRequest(random));
  const auto parsed = scrape::ParseRequest(text);
  if (!parsed.ok()) {
    if (absl::IsInvalidArgument(parsed.status())) return {"refused", {}};
    return {"refused", absl::StrCat("refused otherwise: ", parsed.status().ToString())};
  }
  if (!parsed->has_value()) {
    const bool has_ended = absl::StrContains(text, "\r\n\r\n");
    if (has_ended) return {"accepted", "the header has ended, and more is waited for"};
    return {"unfinished", {}};
  }
  const scrape::Request& request = **parsed;
  if (!absl::StartsWith(request.path, "/") || absl::StrContains(request.path, "?"))
    return {"accepted", absl::StrCat("a path of \"", request.path, "\"")};
  const size_t header = text.find("\r\n\r\n") + 4;
  const auto with_more = scrape::ParseRequest(absl::StrCat(text.substr(0, header), "more\r\n"));
  if (!with_more.ok() || !with_more->has_value() || !Equal(**with_more, request))
    return {"accepted", "what follows the header changes the request"};
  const auto part = scrape::ParseRequest(text.substr(0, Below(random, header)));
  if (!part.ok() || part->has_value()) return {"accepted", "a part of the header is a request"};
  return {"accepted", {}};
}

Outcome TryOne(Random& random) { return OneIn(random, 2) ? TryFrames(random) : TryRequest(random); }

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) { return kiln::fuzz::Run(argc, argv, 0.2, kiln::fuzz::TryOne); }
