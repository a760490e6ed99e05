// For ThreadSanitizer, where it would report each byte of a message.
#ifndef KILN_SERVER_RPC_UNWATCHED_READS_H_
#define KILN_SERVER_RPC_UNWATCHED_READS_H_

#include "absl/base/dynamic_annotations.h"

namespace kiln::rpc {

// While it exists, ThreadSanitizer does not watch what this thread reads. For the bytes of a message:
// Debian's gRPC, which is built without the sanitizer, hands them from thread to thread in ways that it
// does not always see. Such reports are suppressed (tests/sanitizers/tsan.supp), but each takes a
// millisecond, and a message has millions of bytes.
class UnwatchedReads {
 public:
  UnwatchedReads() { ABSL_ANNOTATE_IGNORE_READS_BEGIN(); }
  ~UnwatchedReads() { ABSL_ANNOTATE_IGNORE_READS_END(); }
  UnwatchedReads(const UnwatchedReads&) = delete;
  UnwatchedReads& operator=(const UnwatchedReads&) = delete;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_UNWATCHED_READS_H_
