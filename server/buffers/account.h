// Who holds how much memory.
#ifndef KILN_SERVER_BUFFERS_ACCOUNT_H_
#define KILN_SERVER_BUFFERS_ACCOUNT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace kiln::buffers {

// Counts the values of one session (and, through `parent`, those of its user). Thread-safe. Shared,
// since values in flight outlive their session.
class Account {
 public:
  explicit Account(std::shared_ptr<Account> parent = nullptr) : parent_(std::move(parent)) {}

  void Add(int64_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    buffers_.fetch_add(1, std::memory_order_relaxed);
    if (parent_) parent_->Add(bytes);
  }
  void Remove(int64_t bytes) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    buffers_.fetch_sub(1, std::memory_order_relaxed);
    if (parent_) parent_->Remove(bytes);
  }

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t buffers() const { return buffers_.load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<Account> parent_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> buffers_{0};
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_ACCOUNT_H_
