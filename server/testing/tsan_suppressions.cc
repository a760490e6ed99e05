// What ThreadSanitizer reports falsely in the server's tests, in addition to
// tests/sanitizers/tsan.supp.
//
// absl::Status counts references: up in its header, which the sanitizer sees, down in Debian's
// library, which it does not. The thread that drops the last reference then seems to free what
// another still counts up.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:^absl::debian3::Status::Unref\n";
}
