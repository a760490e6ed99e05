#include "server/relay/connection_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::relay {

ConnectionLimits ConnectionLimits::ForFiles(uint64_t files) {
  constexpr uint64_t kFilesOfConnection = 3;
  constexpr uint64_t kFilesElsewhereMax = 1024;
  const uint64_t elsewhere = std::min(files / 4, kFilesElsewhereMax);
  const auto connections = static_cast<size_t>((files - elsewhere) / kFilesOfConnection);
  constexpr size_t kStrangersMax = 256;
  const size_t half = std::max<size_t>(connections / 2, 1);
  return {.connections_max = std::max<size_t>(connections, 2),
          .user_max = half,
          .strangers_max = std::min(half, kStrangersMax)};
}

std::vector<uint64_t> ConnectionTable::Add(uint64_t number, const std::string& origin,
                                           std::shared_ptr<Activity> activity) {
  absl::MutexLock lock(&mutex_);
  // No user's name has a blank.
  std::string owner = absl::StrCat("strangers of ", origin);
  owners_[owner].insert(number);
  entries_.emplace(number, Entry{owner, std::move(activity)});
  return CloseExcess(owner, limits_.strangers_max);
}

std::vector<uint64_t> ConnectionTable::SetUser(uint64_t number, const std::string& user) {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return {};
  std::shared_ptr<Activity> activity = entry->second.activity;
  RemoveLocked(number);
  owners_[user].insert(number);
  entries_.emplace(number, Entry{user, std::move(activity)});
  return CloseExcess(user, limits_.user_max);
}

void ConnectionTable::Remove(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  RemoveLocked(number);
}

size_t ConnectionTable::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

std::vector<uint64_t> ConnectionTable::CloseExcess(const std::string& owner, size_t owner_max) {
  std::vector<uint64_t> closed;
  const auto close_one = [&](const std::string& of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    closed.push_back(MostSilent(of));
    RemoveLocked(closed.back());
  };
  if (owners_.at(owner).size() > owner_max) close_one(owner);
  if (entries_.size() > limits_.connections_max) close_one(OwnerWithMost());
  return closed;
}

uint64_t ConnectionTable::MostSilent(const std::string& owner) const {
  const std::set<uint64_t>& numbers = owners_.at(owner);
  return *std::min_element(numbers.begin(), numbers.end(),
                           [&](uint64_t a, uint64_t b) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                             return entries_.at(a).activity->nanoseconds() <
                                    entries_.at(b).activity->nanoseconds();
                           });
}

const std::string& ConnectionTable::OwnerWithMost() const {
  const auto most = std::max_element(
      owners_.begin(), owners_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return most->first;
}

void ConnectionTable::RemoveLocked(uint64_t number) {
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return;
  const auto owner = owners_.find(entry->second.owner);
  owner->second.erase(number);
  if (owner->second.empty()) owners_.erase(owner);
  entries_.erase(entry);
}

}  // namespace kiln::relay
