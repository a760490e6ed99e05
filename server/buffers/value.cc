#include "server/buffers/value.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ops/rules/infer.h"
#include "proto/check/check.h"
#include "server/buffers/pool.h"

namespace kiln::buffers {

int64_t TensorType::bytes() const {
  int64_t count = ir::SizeOf(dtype);
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string TensorType::ToString() const {
  return absl::StrCat(std::string(ir::Name(dtype)), "[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckTensorType(const TensorType& type) {
  if (type.shape.size() > ops::kRankMax) {
    return absl::InvalidArgumentError(absl::StrCat("the shape has ", type.shape.size(),
                                                   " dimensions; at most ", ops::kRankMax,
                                                   " are allowed"));
  }
  int64_t bytes = ir::SizeOf(type.dtype);
  if (bytes == 0) return absl::InvalidArgumentError("the dtype is missing or unknown");
  for (const int64_t size : type.shape) {
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a dimension of ", type.ToString(), " is negative"));
    }
    // A size of 0 must not hide an overflow of the others: bytes() multiplies them in order.
    if (size > 1 && __builtin_mul_overflow(bytes, size, &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(type.ToString(), " has 2^63 bytes or more"));
    }
  }
  return absl::OkStatus();
}

ValueMemory::ValueMemory(std::unique_ptr<drivers::Buffer> buffer, std::shared_ptr<Pool> pool,
                         std::shared_ptr<Account> account, int64_t bytes, int64_t life)
    : buffer(std::move(buffer)),
      pool(std::move(pool)),
      account(std::move(account)),
      bytes(bytes),
      life(life) {
  KILN_CHECK(this->buffer != nullptr && this->pool != nullptr);
  KILN_CHECK_GE(bytes, 0);
}

ValueMemory::~ValueMemory() {
  if (account) account->Remove(bytes);
  pool->Free(std::move(buffer), account ? account->top() : nullptr);
}

const std::string& Value::user() const {
  static const std::string* const kNoUser = new std::string();
  return account() ? account()->user() : *kNoUser;
}

std::shared_ptr<Value> Value::Failed(absl::Status status, memory::Charge charge) {
  auto value = std::make_shared<Value>(nullptr, nullptr);
  value->charge_ = std::move(charge);
  value->Resolve(std::move(status));
  return value;
}

Value::Value(std::shared_ptr<const TensorType> type, std::shared_ptr<ValueMemory> memory)
    : type_(std::move(type)), memory_(std::move(memory)) {
  KILN_CHECK(memory_ == nullptr || type_ != nullptr);
}

std::shared_ptr<Value> Value::Over(std::shared_ptr<const TensorType> type, const Value& old) {
  KILN_CHECK_NE(old.memory_, nullptr);
  KILN_CHECK_LE(type->bytes(), old.memory_->bytes);
  return std::make_shared<Value>(std::move(type), old.memory_);
}

std::shared_ptr<Value> Value::Sharded(std::shared_ptr<const TensorType> type,
                                      std::shared_ptr<const Placement> placement,
                                      std::vector<std::shared_ptr<Value>> parts) {
  auto value = std::make_shared<Value>(std::move(type), nullptr);
  KILN_CHECK_NE(placement, nullptr);
  KILN_CHECK_EQ(parts.size(), placement->devices.size());
  for (const std::shared_ptr<Value>& part : parts) KILN_CHECK_NE(part, nullptr);
  value->placement_ = std::move(placement);
  value->parts_ = std::move(parts);
  return value;
}

bool Value::lost() const {
  if (memory_ != nullptr) return memory_->pool->life() != memory_->life;
  return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->lost(); });
}

void Value::Resolve(absl::Status status) {
  for (const std::shared_ptr<Value>& part : parts_) part->Resolve(status);
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    if (resolved_.load(std::memory_order_relaxed)) return;
    status_ = std::move(status);
    resolved_.store(true, std::memory_order_release);
    waiters.swap(waiters_);
  }
  // Without the lock: waiters take other locks and may call this value again.
  for (const Waiter& waiter : waiters) waiter(status_);
}

void Value::Doom(const absl::Status& why) {
  for (const std::shared_ptr<Value>& part : parts_) part->Doom(why);
  absl::MutexLock lock(&mutex_);
  doom_ = why;
  is_doomed_.store(true, std::memory_order_release);
}

absl::Status Value::failure() const {
  if (resolved()) return status_;
  if (!is_doomed_.load(std::memory_order_acquire)) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return doom_;
}

bool Value::AddWaiter(Waiter waiter) {
  // A check without the lock for most callers. The one under the lock decides: either this returns
  // false, or Resolve finds the waiter in the list.
  if (resolved()) return false;
  absl::MutexLock lock(&mutex_);
  if (resolved_.load(std::memory_order_relaxed)) return false;
  KILN_CHECK(waiter != nullptr);
  waiters_.push_back(std::move(waiter));
  return true;
}

}  // namespace kiln::buffers
