#include "clients/cli/pager.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

namespace kiln::cli {
namespace {

constexpr char kDefaultPager[] = "less -FRX";
// The status of a shell that does not find a command.
constexpr int kNotFound = 127;

}  // namespace

bool ShowInPager(const std::string& text) {
  const char* const chosen = std::getenv("PAGER");
  const std::string command = chosen == nullptr ? kDefaultPager : chosen;
  if (command.empty() || command == "cat") return false;
  FILE* const pager = popen(command.c_str(), "w");
  // After it has started, since it would inherit both. The user may leave the pager before it has
  // read everything.
  struct sigaction ignored = {}, before = {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &before);
  // Ctrl-C is for the pager.
  struct sigaction interrupt_before = {};
  sigaction(SIGINT, &ignored, &interrupt_before);
  int status = -1;
  if (pager != nullptr) {
    fwrite(text.data(), 1, text.size(), pager);
    status = pclose(pager);
  }
  sigaction(SIGPIPE, &before, nullptr);
  sigaction(SIGINT, &interrupt_before, nullptr);
  return status >= 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
}

}  // namespace kiln::cli
