#include "server/rpc/tls_watch.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"

namespace kiln::rpc {

std::string TlsWatch::State() const {
  std::string state;
  for (const std::string* path : {&files_.certificate, &files_.key, &files_.client_ca}) {
    struct stat found {};
    if (path->empty() || stat(path->c_str(), &found) != 0) found = {};
    absl::StrAppend(&state, found.st_ino, " ", found.st_size, " ", found.st_mtim.tv_sec, ".",
                    found.st_mtim.tv_nsec, " ");
  }
  return state;
}

void TlsWatch::Look() {
  if (files_.empty()) return;
  std::string state = State();
  if (state == state_) return;
  state_ = std::move(state);
  if (const absl::Status status = CheckFiles(files_); !status.ok()) {
    log::Warning("tls_files_refused",
                 {{"why", std::string(status.message())},
                  {"until_mended", "new connections fail; those that are open go on"}});
    return;
  }
  log::Info("tls_files_replaced", {{"certificate", files_.certificate}});
}

}  // namespace kiln::rpc
