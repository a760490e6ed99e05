// Notifications for systemd, by the protocol of sd_notify(3): datagrams to the socket named by
// $NOTIFY_SOCKET. Does nothing if the daemon was not started by systemd.
#ifndef KILN_SERVER_SERVICE_MANAGER_H_
#define KILN_SERVER_SERVICE_MANAGER_H_

#include <string>

#include "absl/time/time.h"
#include "server/config/config.h"

namespace kiln {

// Thread-safe.
class ServiceManager {
 public:
  ServiceManager(const config::Environment& environment, int process_id);

  // The daemon serves clients.
  void Ready() const { Tell("READY=1"); }
  void Stopping() const { Tell("STOPPING=1"); }
  // systemd restarts the daemon unless this is called every watchdog_interval.
  void Alive() const { Tell("WATCHDOG=1"); }
  // Half of systemd's timeout; infinite if systemd does not watch this process.
  absl::Duration watchdog_interval() const { return watchdog_interval_; }

 private:
  void Tell(const std::string& state) const;

  std::string socket_;  // empty: no notifications
  absl::Duration watchdog_interval_ = absl::InfiniteDuration();
};

}  // namespace kiln

#endif  // KILN_SERVER_SERVICE_MANAGER_H_
