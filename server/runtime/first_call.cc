#include "server/runtime/first_call.h"

#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"

namespace kiln::runtime {

int64_t PageFaults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

FirstCall::FirstCall(Now now, std::string_view part, absl::Time began,
                     std::function<int64_t()> page_faults)
    : now_(std::move(now)), page_faults_(std::move(page_faults)), began_(began) {
  absl::MutexLock lock(&mutex_);
  part_began_ = began_;
  faults_before_ = page_faults_();
  current_ = std::string(part);
}

FirstCall::Part& FirstCall::Find(std::string_view name) {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const Part& part) { return part.name == name; });
  if (found != parts_.end()) return *found;
  parts_.push_back({std::string(name), absl::ZeroDuration(), 0});
  return parts_.back();
}

void FirstCall::EndPart() {
  const absl::Time now = now_();
  const int64_t faults = page_faults_();
  Part& part = Find(current_);
  part.time += now - part_began_ - std::exchange(taken_out_, absl::ZeroDuration());
  part.page_faults += faults - std::exchange(faults_before_, faults);
  part_began_ = now;
  KILN_VALIDATE(*this, parts_.size());
}

void FirstCall::Validate() const {
  absl::Duration sum = absl::ZeroDuration();
  std::set<std::string> names;
  for (const Part& part : parts_) {
    sum += part.time;
    const bool is_new = names.insert(part.name).second;
    KILN_CHECK(is_new) << part.name;
  }
  // They follow one another without a gap. What was taken out of the current part is in other parts
  // already.
  KILN_CHECK(sum == part_began_ - began_ + taken_out_)
      << absl::FormatDuration(sum) << " of " << absl::FormatDuration(part_began_ - began_);
}

void FirstCall::Begin(std::string_view part) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  EndPart();
  current_ = std::string(part);
}

void FirstCall::TakeOut(const std::vector<compiler::PassReport>& passes) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  const auto add = [this](std::string_view name, double seconds) {
    mutex_.AssertHeld();
    const absl::Duration time = absl::Seconds(seconds);
    Find(name).time += time;
    taken_out_ += time;
  };
  for (const compiler::PassReport& pass : passes) {
    double rest = pass.seconds;
    for (const compiler::PassPart& part : pass.parts) {
      add(absl::StrCat(pass.pass, ".", part.name), part.seconds);
      rest -= part.seconds;
    }
    add(pass.pass, rest);
  }
  KILN_VALIDATE(*this, parts_.size());
}

void FirstCall::CountKernels(int found, int made) {
  absl::MutexLock lock(&mutex_);
  kernels_ += found;
  kernels_made_ += made;
}

void FirstCall::End() {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(ended_, true)) return;
  EndPart();
}

bool FirstCall::has_ended() const {
  absl::MutexLock lock(&mutex_);
  return ended_;
}

FirstCall::Progress FirstCall::progress() const {
  absl::MutexLock lock(&mutex_);
  return {current_, now_() - began_, kernels_, kernels_made_};
}

std::vector<FirstCall::Part> FirstCall::parts() const {
  absl::MutexLock lock(&mutex_);
  return parts_;
}

absl::Duration FirstCall::total() const {
  absl::MutexLock lock(&mutex_);
  return (ended_ ? part_began_ : now_()) - began_;
}

}  // namespace kiln::runtime
