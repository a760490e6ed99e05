#include "server/sessions/answer_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"

namespace kiln::sessions {
namespace {

// While host memory is short, at most this many bytes of answers may wait for acknowledgement.
constexpr int64_t kBytesWhenShort = 256 << 10;

// The memory of an answer's object and its place in queues and tables.
constexpr int64_t kAnswerBytes = 512;

}  // namespace

int64_t SizeOf(const Answer& answer) {
  const int64_t error = answer.error.ok() ? 0 : errors::BytesOf(answer.error);
  return kAnswerBytes + error + static_cast<int64_t>(answer.digest.capacity());
}

absl::StatusOr<bool> AnswerLog::Receive(uint64_t sequence) {
  if (sequence == last_received_ + 1) {
    last_received_ = sequence;
    return true;
  }
  if (sequence != 0 && sequence <= last_received_) return false;
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("operation ", sequence,
                                              " was sent, but the next sequence number must be ",
                                              last_received_ + 1)),
      "BAD_SEQUENCE");
}

void AnswerLog::Acknowledge(uint64_t sequence) {
  acknowledged_ = std::max(acknowledged_, sequence);
  while (!answers_.empty() && answers_.begin()->first <= sequence) {
    bytes_ -= answers_.begin()->second->charge.bytes();
    answers_.erase(answers_.begin());
  }
  KILN_CHECK_GE(bytes_, 0);
  KILN_VALIDATE(*this, size());
}

void AnswerLog::Add(std::shared_ptr<const Answer> answer) {
  KILN_CHECK(answer != nullptr);
  bytes_ += answer->charge.bytes();
  const uint64_t sequence = answer->sequence;
  const bool is_new = answers_.emplace(sequence, std::move(answer)).second;
  KILN_CHECK(is_new) << "operation " << sequence << " is answered twice";
  KILN_VALIDATE(*this, size());
}

void AnswerLog::RestoreReceived(uint64_t sequence) {
  KILN_CHECK_GE(sequence, last_received_);
  last_received_ = sequence;
}

void AnswerLog::Validate() const {
  int64_t bytes = 0;
  for (const auto& [sequence, answer] : answers_) {
    KILN_CHECK_GT(sequence, uint64_t{0});
    KILN_CHECK(answer != nullptr) << sequence;
    KILN_CHECK_EQ(answer->sequence, sequence);
    bytes += answer->charge.bytes();
  }
  KILN_CHECK_EQ(bytes_, bytes);
}

absl::Status AnswerLog::CheckAcknowledged(Limits limits, bool host_is_short) const {
  const bool few =
      static_cast<int64_t>(answers_.size()) <= limits.answers && bytes_ <= limits.bytes;
  if (few && (bytes_ <= kBytesWhenShort || !host_is_short)) return absl::OkStatus();
  return errors::WithReason(
      absl::ResourceExhaustedError(
          absl::StrCat(answers_.size(), " answers of ", bytes_, " bytes have not been acknowledged",
                       few ? ", and the daemon is short of host memory" : "",
                       "; acknowledge them (ConnectRequest.acknowledged)")),
      "UNACKNOWLEDGED");
}

std::vector<std::shared_ptr<const Answer>> AnswerLog::Unacknowledged() const {
  std::vector<std::shared_ptr<const Answer>> answers;
  answers.reserve(answers_.size());
  for (const auto& [sequence, answer] : answers_) answers.push_back(answer);
  return answers;
}

}  // namespace kiln::sessions
