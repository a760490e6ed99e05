// Tells ThreadSanitizer about the order that Abseil's locks establish. Debian's
// libabsl_synchronization is built without the sanitizer, so that ThreadSanitizer would report
// every access that an absl::Mutex guards, including gRPC's own data. This library precedes it in
// the search for symbols: each function here calls Abseil's and annotates what happens before what.
//
// Abseil evaluates conditions while it holds the lock, but possibly before this file can annotate
// that, and in the thread that unlocks, on the stacks of waiting threads. So reads within
// conditions are ignored.
#include <dlfcn.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

template <typename Function>
Function* Next(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

// Releases the lock in its scope.
class Unlocking {
 public:
  explicit Unlocking(void* lock) {
    __tsan_release(lock);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  }
  ~Unlocking() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// Releases the lock and acquires it again in its scope.
class Waiting {
 public:
  explicit Waiting(void* lock) : lock_(lock), unlocking_(lock) {}
  ~Waiting() { __tsan_acquire(lock_); }

 private:
  void* const lock_;
  Unlocking unlocking_;
};

}  // namespace

// The function of the same (mangled) name in the next library.
#define NEXT(symbol, ...) static auto* const next = Next<__VA_ARGS__>("_ZN4absl7debian3" symbol)
#define NEXT_CONST(symbol, ...) \
  static auto* const next = Next<__VA_ARGS__>("_ZNK4absl7debian3" symbol)

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  NEXT("5Mutex4LockEv", void(Mutex*));
  next(this);
  __tsan_acquire(this);
}
void Mutex::Unlock() {
  NEXT("5Mutex6UnlockEv", void(Mutex*));
  Unlocking unlocking(this);
  next(this);
}
bool Mutex::TryLock() {
  NEXT("5Mutex7TryLockEv", bool(Mutex*));
  const bool taken = next(this);
  if (taken) __tsan_acquire(this);
  return taken;
}
void Mutex::ReaderLock() {
  NEXT("5Mutex10ReaderLockEv", void(Mutex*));
  next(this);
  __tsan_acquire(this);
}
void Mutex::ReaderUnlock() {
  NEXT("5Mutex12ReaderUnlockEv", void(Mutex*));
  Unlocking unlocking(this);
  next(this);
}
void Mutex::Await(const Condition& condition) {
  NEXT("5Mutex5AwaitERKNS0_9ConditionE", void(Mutex*, const Condition&));
  Waiting waiting(this);
  next(this, condition);
}
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  NEXT("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE",
       bool(Mutex*, const Condition&, Duration));
  Waiting waiting(this);
  return next(this, condition, timeout);
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  NEXT("5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE",
       bool(Mutex*, const Condition&, Time));
  Waiting waiting(this);
  return next(this, condition, deadline);
}
void Mutex::LockWhen(const Condition& condition) {
  NEXT("5Mutex8LockWhenERKNS0_9ConditionE", void(Mutex*, const Condition&));
  Waiting waiting(this);
  next(this, condition);
}

void CondVar::Wait(Mutex* mutex) {
  NEXT("7CondVar4WaitEPNS0_5MutexE", void(CondVar*, Mutex*));
  Waiting waiting(mutex);
  next(this, mutex);
}
bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  NEXT("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE", bool(CondVar*, Mutex*, Duration));
  Waiting waiting(mutex);
  return next(this, mutex, timeout);
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  NEXT("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", bool(CondVar*, Mutex*, Time));
  Waiting waiting(mutex);
  return next(this, mutex, deadline);
}

void Notification::Notify() {
  NEXT("12Notification6NotifyEv", void(Notification*));
  __tsan_release(this);
  next(this);
}
void Notification::WaitForNotification() const {
  NEXT_CONST("12Notification19WaitForNotificationEv", void(const Notification*));
  next(this);
  __tsan_acquire(const_cast<Notification*>(this));
}
bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  NEXT_CONST("12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
             bool(const Notification*, Duration));
  const bool notified = next(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool BlockingCounter::DecrementCount() {
  NEXT("15BlockingCounter14DecrementCountEv", bool(BlockingCounter*));
  __tsan_release(this);
  return next(this);
}
void BlockingCounter::Wait() {
  NEXT("15BlockingCounter4WaitEv", void(BlockingCounter*));
  next(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
