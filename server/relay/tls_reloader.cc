#include "server/relay/tls_reloader.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"

namespace kiln::relay {

absl::StatusOr<std::unique_ptr<TlsReloader>> TlsReloader::Load(TlsFiles files, Protocol protocol,
                                                               Reports reports) {
  std::unique_ptr<TlsReloader> reloader(new TlsReloader(std::move(files), protocol, reports));
  if (reloader->files_.empty()) return reloader;
  absl::MutexLock lock(&reloader->mutex_);
  // The state first, so that a file replaced meanwhile is read again.
  reloader->state_ = reloader->State();
  auto context = LoadTlsContext(reloader->files_, protocol);
  if (!context.ok()) return context.status();
  reloader->current_ = *std::move(context);
  return reloader;
}

TlsContext TlsReloader::current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

std::string TlsReloader::State() const {
  std::string state;
  for (const std::string* path : {&files_.certificate, &files_.key, &files_.client_ca}) {
    struct stat found {};
    if (path->empty() || stat(path->c_str(), &found) != 0) found = {};
    absl::StrAppend(&state, found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                    found.st_mtim.tv_sec, ".", found.st_mtim.tv_nsec, " ");
  }
  return state;
}

void TlsReloader::Look() {
  if (files_.empty()) return;
  absl::MutexLock lock(&mutex_);
  std::string state = State();
  if (state == state_) return;
  auto context = LoadTlsContext(files_, protocol_);
  if (!context.ok() && std::exchange(refused_, state) == state) return;
  const bool reports = reports_ == Reports::kChanges;
  if (!context.ok()) {
    if (reports)
      log::Warning("tls_files_refused", {{"why", std::string(context.status().message())},
                                         {"until_mended", "the previous files stay in use"}});
    return;
  }
  current_ = *std::move(context);
  state_ = std::move(state);
  if (reports) log::Info("tls_files_replaced", {{"certificate", files_.certificate}});
}

}  // namespace kiln::relay
