#include "server/relay/call_budgets.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::relay {

void CallBudgets::Connection::SetUser(const std::string& user) {
  absl::MutexLock lock(&budgets_.mutex_);
  KILN_CHECK(!owners_.empty());
  owners_.resize(1);
  owners_.push_back(budgets_.User(user));
}

absl::Duration CallBudgets::Connection::BeginCall(absl::Time now) {
  absl::MutexLock lock(&budgets_.mutex_);
  return budgets_.Take(owners_, &Owner::calls, now);
}

absl::Duration CallBudgets::Connection::SendSmallFrame(absl::Time now) {
  absl::MutexLock lock(&budgets_.mutex_);
  return budgets_.Take(owners_, &Owner::small_frames, now);
}

absl::Duration CallBudgets::Greet(const std::string& origin, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  return Take({Origin(origin), strangers_}, &Owner::greetings, now);
}

std::unique_ptr<CallBudgets::Connection> CallBudgets::Open(const std::string& origin,
                                                           absl::Time now) {
  std::unique_ptr<Connection> connection(new Connection(*this));
  absl::MutexLock lock(&mutex_);
  now_ = std::max(now_, now);
  connection->owners_ = {MakeOwner(&Rates::connection, rates_.greetings), Origin(origin),
                         strangers_};
  return connection;
}

absl::Duration CallBudgets::Take(const std::vector<std::shared_ptr<Owner>>& owners, Bucket bucket,
                                 absl::Time now) {
  KILN_CHECK(!owners.empty());
  now_ = std::max(now_, now);
  absl::Duration wait = absl::ZeroDuration();
  for (const auto& owner : owners) wait = std::max(wait, ((*owner).*bucket).Wait(now));
  if (wait > absl::ZeroDuration()) return wait;
  for (const auto& owner : owners) ((*owner).*bucket).Take();
  return wait;
}

std::shared_ptr<CallBudgets::Owner> CallBudgets::MakeOwner(Rate Rates::*whose,
                                                           Rate greetings) const {
  return std::make_shared<Owner>(Owner{TokenBucket(rates_.calls.*whose),
                                       TokenBucket(rates_.small_frames.*whose),
                                       TokenBucket(greetings)});
}

std::shared_ptr<CallBudgets::Owner> CallBudgets::Origin(const std::string& origin) {
  if (const auto found = origins_.find(origin); found != origins_.end()) return found->second;
  if (!HasPlace(origins_)) return other_origins_;
  const auto added =
      origins_.emplace(origin, MakeOwner(&Rates::origin, rates_.greetings_of_origin)).first;
  KILN_VALIDATE(*this, origins_.size() + users_.size());
  return added->second;
}

std::shared_ptr<CallBudgets::Owner> CallBudgets::User(const std::string& user) {
  if (const auto found = users_.find(user); found != users_.end()) return found->second;
  if (!HasPlace(users_)) return other_users_;
  const auto added = users_.emplace(user, MakeOwner(&Rates::user, rates_.greetings)).first;
  KILN_VALIDATE(*this, origins_.size() + users_.size());
  return added->second;
}

void CallBudgets::Validate() const {
  for (const Table* table : {&origins_, &users_}) {
    KILN_CHECK_LE(table->size(), kBucketsMax);
    for (const auto& [name, owner] : *table) {
      KILN_CHECK_NE(owner, nullptr) << name;
      // The common buckets are in no table, from which HasPlace could drop them.
      KILN_CHECK(owner != strangers_ && owner != other_origins_ && owner != other_users_) << name;
    }
  }
}

// A full bucket has no history, so it can be dropped.
bool CallBudgets::HasPlace(Table& table) {
  if (table.size() < kBucketsMax) return true;
  for (auto each = table.begin(); each != table.end();) {
    const bool is_unused = each->second.use_count() == 1 && each->second->IsFull(now_);
    each = is_unused ? table.erase(each) : std::next(each);
  }
  return table.size() < kBucketsMax;
}

}  // namespace kiln::relay
