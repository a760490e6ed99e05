#include "proto/check/check.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace kiln {

CheckFailure::CheckFailure(const char* file, int line, std::string condition) {
  text_ << file << ":" << line << ": invariant violated: " << condition;
}

std::ostream& CheckFailure::stream() { return text_ << ": "; }

CheckFailure::~CheckFailure() {
  const std::string text = text_.str() + "\n";
  // One write, so that the messages of several threads are not mixed.
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::abort();
}

bool ValidatesTables() {
#ifdef KILN_VALIDATES
  return true;
#else
  static const bool on = [] {
    const char* value = std::getenv("KILN_VALIDATE");
    return value != nullptr && std::string(value) == "1";
  }();
  return on;
#endif
}

namespace check_internal {
namespace {

// A table with fewer entries is validated after each operation.
constexpr int64_t kAlwaysMax = 64;

}  // namespace

std::string Take(std::string* condition) {
  const std::unique_ptr<std::string> owned(condition);
  return std::move(*owned);
}

bool ValidatesNow(int64_t size) {
  if (!ValidatesTables()) return false;
  if (size <= kAlwaysMax) return true;
  // Entries visited so far against those that operations of this thread have earned.
  thread_local int64_t owed = 0;
  owed += kAlwaysMax;
  if (owed < size) return false;
  owed = 0;
  return true;
}

}  // namespace check_internal
}  // namespace kiln
