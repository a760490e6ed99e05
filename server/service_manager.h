// What systemd is told of the daemon, by the protocol of sd_notify(3): datagrams to the socket that
// $NOTIFY_SOCKET names. Started by anybody else, the daemon tells nobody anything.
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

  // Clients may come.
  void Ready() const { Tell("READY=1"); }
  void Stopping() const { Tell("STOPPING=1"); }
  // Ends the daemon and starts it again unless it is said every watchdog_interval.
  void Alive() const { Tell("WATCHDOG=1"); }
  // Half of what systemd waits; infinite if it does not watch this process.
  absl::Duration watchdog_interval() const { return watchdog_interval_; }

 private:
  void Tell(const std::string& state) const;

  std::string socket_;  // empty: nobody listens
  absl::Duration watchdog_interval_ = absl::InfiniteDuration();
};

}  // namespace kiln

#endif  // KILN_SERVER_SERVICE_MANAGER_H_
