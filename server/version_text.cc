#include "server/version_text.h"

#include "absl/strings/str_cat.h"
#include "server/daemon.h"

namespace kiln {

std::string VersionText() {
  return absl::StrCat("kilnd ", DaemonVersion(), "\ncommit ", DaemonCommit(), "\nbuild ",
                      KILN_BUILD, "\n");
}

}  // namespace kiln
