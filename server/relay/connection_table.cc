#include "server/relay/connection_table.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::relay {

ConnectionLimits ConnectionLimits::ForFiles(uint64_t files) {
  constexpr uint64_t kFilesOfConnection = 3;
  constexpr uint64_t kFilesElsewhereMax = 1024;
  const uint64_t elsewhere = std::min(files / 4, kFilesElsewhereMax);
  const auto connections = static_cast<size_t>((files - elsewhere) / kFilesOfConnection);
  constexpr size_t kStrangersMax = 256;
  constexpr size_t kUserMax = 1024;
  const size_t half = std::max<size_t>(connections / 2, 1);
  return {.connections_max = std::max<size_t>(connections, 2),
          .user_max = std::min(half, kUserMax),
          .strangers_max = std::min(half, kStrangersMax),
          .all_strangers_max = half};
}

std::vector<uint64_t> ConnectionTable::Add(uint64_t number, const std::string& origin,
                                           std::shared_ptr<Activity> activity) {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK_NE(activity, nullptr);
  Insert(number, {false, origin, std::move(activity)});
  std::vector<uint64_t> closed = CloseExcess(origins_.at(origin), limits_.strangers_max);
  KILN_VALIDATE(*this, entries_.size());
  return closed;
}

std::vector<uint64_t> ConnectionTable::SetUser(uint64_t number, const std::string& user) {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return {};
  std::shared_ptr<Activity> activity = entry->second.activity;
  RemoveLocked(number);
  Insert(number, {true, user, std::move(activity)});
  std::vector<uint64_t> closed = CloseExcess(users_.at(user), limits_.user_max);
  KILN_VALIDATE(*this, entries_.size());
  return closed;
}

void ConnectionTable::Insert(uint64_t number, Entry entry) {
  (entry.is_users ? users_ : origins_)[entry.owner].insert(number);
  if (!entry.is_users) ++strangers_;
  const bool is_new = entries_.emplace(number, std::move(entry)).second;
  KILN_CHECK(is_new) << "connection " << number;
}

void ConnectionTable::Remove(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  RemoveLocked(number);
  KILN_CHECK(!entries_.contains(number)) << "connection " << number;
  KILN_VALIDATE(*this, entries_.size());
}

size_t ConnectionTable::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

std::vector<uint64_t> ConnectionTable::CloseExcess(const std::set<uint64_t>& owned,
                                                   size_t owned_max) {
  std::vector<uint64_t> closed;
  const auto close_one = [&](uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    closed.push_back(number);
    RemoveLocked(number);
  };
  if (owned.size() > owned_max) close_one(MostSilent(owned));
  if (strangers_ > limits_.all_strangers_max) close_one(MostSilentOfMost(origins_));
  if (entries_.size() > limits_.connections_max) {
    const bool are_strangers = strangers_ > std::max<size_t>(limits_.connections_max / 8, 1);
    close_one(MostSilentOfMost(are_strangers || users_.empty() ? origins_ : users_));
  }
  return closed;
}

bool ConnectionTable::IsMoreSilent(uint64_t a, uint64_t b) const {
  return entries_.at(a).activity->nanoseconds() < entries_.at(b).activity->nanoseconds();
}

uint64_t ConnectionTable::MostSilent(const std::set<uint64_t>& numbers) const {
  KILN_CHECK(!numbers.empty());
  return *std::min_element(numbers.begin(), numbers.end(),
                           [&](uint64_t a, uint64_t b) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                             return IsMoreSilent(a, b);
                           });
}

uint64_t ConnectionTable::MostSilentOfMost(const Owners& owners) const {
  KILN_CHECK(!owners.empty());
  size_t highest = 0;
  uint64_t number = 0;
  for (const auto& [owner, numbers] : owners) {
    const uint64_t silent = MostSilent(numbers);
    if (numbers.size() < highest || (numbers.size() == highest && !IsMoreSilent(silent, number)))
      continue;
    highest = numbers.size();
    number = silent;
  }
  return number;
}

void ConnectionTable::RemoveLocked(uint64_t number) {
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return;
  Owners& owners = entry->second.is_users ? users_ : origins_;
  if (!entry->second.is_users) {
    KILN_CHECK_GT(strangers_, 0);
    --strangers_;
  }
  const auto owner = owners.find(entry->second.owner);
  KILN_CHECK(owner != owners.end()) << entry->second.owner;
  const size_t erased = owner->second.erase(number);
  KILN_CHECK_EQ(erased, 1) << "connection " << number;
  if (owner->second.empty()) owners.erase(owner);
  entries_.erase(entry);
}

void ConnectionTable::Validate() const {
  ValidateOwners(users_, true, limits_.user_max);
  ValidateOwners(origins_, false, limits_.strangers_max);
  size_t owned = 0, strangers = 0;
  for (const auto& [user, numbers] : users_) owned += numbers.size();
  for (const auto& [origin, numbers] : origins_) strangers += numbers.size();
  KILN_CHECK_EQ(owned + strangers, entries_.size());
  KILN_CHECK_EQ(strangers, strangers_);
  KILN_CHECK_LE(strangers_, limits_.all_strangers_max);
  KILN_CHECK_LE(entries_.size(), limits_.connections_max);
}

void ConnectionTable::ValidateOwners(const Owners& owners, bool are_users, size_t owned_max) const {
  for (const auto& [owner, numbers] : owners) {
    KILN_CHECK(!numbers.empty()) << owner;
    KILN_CHECK_LE(numbers.size(), owned_max) << owner;
    for (const uint64_t number : numbers) {
      const auto entry = entries_.find(number);
      KILN_CHECK(entry != entries_.end()) << "connection " << number << " of " << owner;
      KILN_CHECK_EQ(entry->second.owner, owner) << "connection " << number;
      KILN_CHECK_EQ(entry->second.is_users, are_users) << "connection " << number;
      KILN_CHECK_NE(entry->second.activity, nullptr) << "connection " << number;
    }
  }
}

}  // namespace kiln::relay
