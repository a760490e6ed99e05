#include "server/sessions/answer_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"

namespace kiln::sessions {

absl::StatusOr<bool> AnswerLog::Receive(uint64_t sequence) {
  if (sequence == last_received_ + 1) {
    last_received_ = sequence;
    return true;
  }
  if (sequence != 0 && sequence <= last_received_) return false;
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat(
          "operation ", sequence, " came, but the next sequence number is ", last_received_ + 1)),
      "BAD_SEQUENCE");
}

void AnswerLog::Acknowledge(uint64_t sequence) {
  while (!answers_.empty() && answers_.begin()->first <= sequence) {
    bytes_ -= answers_.begin()->second->charge.bytes();
    answers_.erase(answers_.begin());
  }
}

void AnswerLog::Add(std::shared_ptr<const Answer> answer) {
  bytes_ += answer->charge.bytes();
  const uint64_t sequence = answer->sequence;
  answers_.emplace(sequence, std::move(answer));
}

std::vector<std::shared_ptr<const Answer>> AnswerLog::Unacknowledged() const {
  std::vector<std::shared_ptr<const Answer>> answers;
  answers.reserve(answers_.size());
  for (const auto& [sequence, answer] : answers_) answers.push_back(answer);
  return answers;
}

}  // namespace kiln::sessions
