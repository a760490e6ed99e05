#include "server/relay/frame_meter.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::relay {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHeaderBytes = 9;
constexpr uint8_t kEndHeaders = 0x4;

Frame ParseFrameHeader(absl::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
  return {.type = static_cast<uint8_t>(bytes[3]),
          .flags = static_cast<uint8_t>(bytes[4]),
          .payload_bytes = byte(0) << 16 | byte(1) << 8 | byte(2)};
}

}  // namespace

bool FrameMeter::has_preface() const { return preface_bytes_ == kPreface.size(); }

absl::StatusOr<size_t> FrameMeter::Pass(absl::string_view bytes,
                                        absl::FunctionRef<bool(const Frame&)> admit) {
  const absl::string_view preface = kPreface.substr(preface_bytes_).substr(0, bytes.size());
  if (bytes.substr(0, preface.size()) != preface)
    return absl::InvalidArgumentError("the client does not speak HTTP/2");
  preface_bytes_ += preface.size();
  KILN_CHECK_LE(preface_bytes_, kPreface.size());
  size_t passed = preface.size();
  while (true) {
    const size_t payload = std::min<size_t>(payload_left_, bytes.size() - passed);
    payload_left_ -= static_cast<int64_t>(payload);
    passed += payload;
    KILN_CHECK_LE(passed, bytes.size());
    KILN_VALIDATE(*this, 1);
    if (bytes.size() - passed < kFrameHeaderBytes || !has_preface()) return passed;
    const Frame frame = ParseFrameHeader(bytes.substr(passed));
    if (!admit(frame)) return passed;
    if (absl::Status status = CheckHeaderBlock(frame); !status.ok()) return status;
    payload_left_ = frame.payload_bytes;
    passed += kFrameHeaderBytes;
  }
}

void FrameMeter::Validate() const {
  KILN_CHECK_GE(payload_left_, 0);
  KILN_CHECK_LT(payload_left_, int64_t{1} << 24);
  KILN_CHECK(payload_left_ == 0 || has_preface());
  KILN_CHECK_GE(header_block_bytes_, 0);
  KILN_CHECK_LE(header_block_bytes_, kHeaderBlockBytesMax);
}

absl::Status FrameMeter::CheckHeaderBlock(const Frame& frame) {
  if (frame.type != Frame::kHeaders && frame.type != Frame::kContinuation) return absl::OkStatus();
  if (frame.type == Frame::kHeaders) header_block_bytes_ = 0;
  // An empty frame costs the server, too.
  header_block_bytes_ += frame.payload_bytes + kFrameHeaderBytes;
  if (header_block_bytes_ > kHeaderBlockBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the headers of a call are larger than ", kHeaderBlockBytesMax, " bytes"));
  }
  if ((frame.flags & kEndHeaders) != 0) header_block_bytes_ = 0;
  return absl::OkStatus();
}

}  // namespace kiln::relay
