# Writes OUTPUT, a C++ source with the commit of the sources in SOURCE_DIR, unless it is there already. $KILN_COMMIT names the
# commit of sources outside of a git repository.
set(commit "$ENV{KILN_COMMIT}")
if(NOT commit)
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(commit unknown)
  endif()
endif()
if(NOT commit MATCHES "^[0-9A-Za-z._-]+$")
  message(FATAL_ERROR "KILN_COMMIT is not a commit: ${commit}")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "server/daemon.h"

namespace kiln {

std::string DaemonCommit() { return "@commit@"; }

}  // namespace kiln
]] @ONLY)
