// The result of opening a driver.
#ifndef KILN_SERVER_RUNTIME_DEVICE_DRIVER_REPORT_H_
#define KILN_SERVER_RUNTIME_DEVICE_DRIVER_REPORT_H_

#include <string>

namespace kiln::runtime {

struct DriverReport {
  std::string driver;        // "cuda"
  int devices = 0;           // number of devices offered
  std::string why_not_more;  // empty if nothing is missing
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_DEVICE_DRIVER_REPORT_H_
