#include "server/probed_driver.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/workers/channel.h"
#include "compiler/workers/worker.h"
#include "proto/check/check.h"
#include "proto/text/printable.h"

namespace kiln {

using workers::Transfer;

ProbedDriver::ProbedDriver(std::unique_ptr<drivers::Driver> driver, Options options)
    : driver_(std::move(driver)),
      options_(std::move(options)),
      probe_(workers::Process::Start(options_.command)) {
  KILN_CHECK_NE(driver_, nullptr);
}

absl::StatusOr<std::vector<std::unique_ptr<drivers::Device>>> ProbedDriver::Enumerate(
    std::string* why_none) {
  if (!verdict_) verdict_ = Judge();
  *why_none = *verdict_;
  if (!verdict_->empty()) return std::vector<std::unique_ptr<drivers::Device>>();
  return driver_->Enumerate(why_none);
}

std::string ProbedDriver::Judge() const {
  KILN_CHECK(!verdict_) << "the probe has ended";
  if (!probe_.ok()) return std::string(probe_.status().message());
  // The probe sends nothing, so this ends when the process does.
  std::string nothing;
  const workers::Deadline deadline(options_.now, options_.time_max);
  const Transfer transfer = workers::Receive((*probe_)->socket(), &nothing, deadline);
  const workers::Ending ending = (*probe_)->End();
  if (transfer == Transfer::kLate) {
    return absl::StrCat("a process that only listed its devices did not finish within ",
                        options_.time_max.count(),
                        " ms; repair the vendor's driver, and restart kilnd");
  }
  if (ending.signal == 0 && ending.status == 0) return "";
  return absl::StrCat(
      "a process that only listed its devices ", ending.ToString(),
      ending.said.empty() ? "" : absl::StrCat(" (\"", PrintableInQuotes(ending.said), "\")"),
      "; repair the vendor's driver, and restart kilnd");
}

void Probe(drivers::Driver& driver) {
  workers::Process::CloseSocketOnExec();
  workers::LimitThisProcess("kiln-probe");
  std::string why_none;
  const auto devices = driver.Enumerate(&why_none);
  // Finding no devices is left to the daemon to report. Skips the library's exit handlers, since a
  // crash at exit does not matter: the daemon does not exit while it uses the library.
  _exit(0);
}

bool MayBeInstalled(const std::string& soname) {
  if (std::getenv("LD_LIBRARY_PATH") != nullptr) return true;
  // The cache file contains the names as plain text; see ldconfig(8).
  std::ifstream cache("/etc/ld.so.cache", std::ios::binary);
  return !cache ||
         absl::StrContains(std::string(std::istreambuf_iterator<char>(cache), {}), soname);
}

}  // namespace kiln
