#include "server/sessions/ended_sessions.h"

#include <algorithm>
#include <utility>

#include "proto/digest/sha256.h"
#include "server/errors/errors.h"

namespace kiln::sessions {

void EndedSessions::Remember(const std::string& id, const std::string& user,
                             const absl::Status& why) {
  Entry entry{Sha256Hex(id), user, errors::WithBoundedMessage(why)};
  absl::MutexLock lock(&mutex_);
  std::erase_if(entries_, [&](const Entry& other) { return other.digest == entry.digest; });
  const auto is_his = [&](const Entry& other) { return other.user == user; };
  if (std::count_if(entries_.begin(), entries_.end(), is_his) >= std::ptrdiff_t{kMostOfAUser}) {
    entries_.erase(std::find_if(entries_.begin(), entries_.end(), is_his));
  } else if (entries_.size() >= kMost) {
    entries_.pop_front();
  }
  entries_.push_back(std::move(entry));
}

absl::Status EndedSessions::Find(const std::string& id, const std::string& user) const {
  const std::string digest = Sha256Hex(id);
  absl::MutexLock lock(&mutex_);
  for (const Entry& entry : entries_)
    if (entry.digest == digest && entry.user == user) return entry.why;
  return absl::OkStatus();
}

}  // namespace kiln::sessions
