// For ThreadSanitizer, which would report each byte of a message.
#ifndef KILN_SERVER_RPC_MESSAGES_UNWATCHED_READS_H_
#define KILN_SERVER_RPC_MESSAGES_UNWATCHED_READS_H_

#include "absl/base/dynamic_annotations.h"

namespace kiln::rpc {

// While it exists, ThreadSanitizer ignores this thread's reads. Used for the bytes of a message:
// Debian's gRPC is built without the sanitizer, which does not see all of the ways in which gRPC
// passes the bytes between threads. Such reports are suppressed (tests/sanitizers/tsan.supp), but
// each costs a millisecond, and a message has millions of bytes.
class UnwatchedReads {
 public:
  UnwatchedReads() { ABSL_ANNOTATE_IGNORE_READS_BEGIN(); }
  ~UnwatchedReads() { ABSL_ANNOTATE_IGNORE_READS_END(); }
  UnwatchedReads(const UnwatchedReads&) = delete;
  UnwatchedReads& operator=(const UnwatchedReads&) = delete;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_UNWATCHED_READS_H_
