#include "server/relay/call_budgets.h"

#include <algorithm>

namespace kiln::relay {
void CallBudgets::Connection::SetUser(const std::string& user) {
  absl::MutexLock lock(&budgets_.mutex_);
  buckets_.resize(1);
  buckets_.push_back(
      budgets_.Find(budgets_.users_, user, budgets_.rates_.user, budgets_.other_users_));
}

absl::Duration CallBudgets::Connection::BeginCall(absl::Time now) {
  absl::MutexLock lock(&budgets_.mutex_);
  budgets_.now_ = std::max(budgets_.now_, now);
  absl::Duration wait = absl::ZeroDuration();
  for (const auto& bucket : buckets_) wait = std::max(wait, bucket->Wait(now));
  if (wait > absl::ZeroDuration()) return wait;
  for (const auto& bucket : buckets_) bucket->Take();
  return wait;
}

std::unique_ptr<CallBudgets::Connection> CallBudgets::Open(const std::string& origin,
                                                           absl::Time now) {
  std::unique_ptr<Connection> connection(new Connection(*this));
  absl::MutexLock lock(&mutex_);
  now_ = std::max(now_, now);
  connection->buckets_ = {std::make_shared<TokenBucket>(rates_.connection),
                          Find(origins_, origin, rates_.origin, other_origins_), strangers_};
  return connection;
}

std::shared_ptr<TokenBucket> CallBudgets::Find(Table& table, const std::string& key, Rate rate,
                                               const std::shared_ptr<TokenBucket>& others) {
  if (const auto found = table.find(key); found != table.end()) return found->second;
  if (table.size() >= kBucketsMax) DropUnused(table);
  if (table.size() >= kBucketsMax) return others;
  return table.emplace(key, std::make_shared<TokenBucket>(rate)).first->second;
}

// A bucket that is full again says nothing about the past.
void CallBudgets::DropUnused(Table& table) {
  for (auto each = table.begin(); each != table.end();) {
    const bool is_unused = each->second.use_count() == 1 && each->second->IsFull(now_);
    each = is_unused ? table.erase(each) : std::next(each);
  }
}

}  // namespace kiln::relay
