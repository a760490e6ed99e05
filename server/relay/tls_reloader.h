// Reloads the TLS files of a port when they are replaced.
#ifndef KILN_SERVER_RELAY_TLS_RELOADER_H_
#define KILN_SERVER_RELAY_TLS_RELOADER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/relay/tls_context.h"

namespace kiln::relay {

// Whether a reloader writes to the daemon's log. One is enough for ports with the same files.
enum class Reports : bool { kNothing, kChanges };

// Thread-safe.
class TlsReloader {
 public:
  // Returns the errors of LoadTlsContext. With empty `files`, current() is always null.
  static absl::StatusOr<std::unique_ptr<TlsReloader>> Load(TlsFiles files,
                                                           Protocol protocol = Protocol::kHttp2,
                                                           Reports reports = Reports::kChanges);

  TlsContext current() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Reloads the files if they differ from those in use (logged as "tls_files_replaced"). Unusable
  // files are logged once ("tls_files_refused"), and the earlier ones stay in use until a later
  // call finds usable ones.
  void Look() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  TlsReloader(TlsFiles files, Protocol protocol, Reports reports)
      : files_(std::move(files)), protocol_(protocol), reports_(reports) {}
  // A text that changes with every change of a file.
  std::string State() const;

  const TlsFiles files_;
  const Protocol protocol_;
  const Reports reports_;
  mutable absl::Mutex mutex_;
  std::string state_ ABSL_GUARDED_BY(mutex_);    // of the files in use
  std::string refused_ ABSL_GUARDED_BY(mutex_);  // of the refused files, which were logged
  TlsContext current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_TLS_RELOADER_H_
