// Temperature, power and clock of a device, as its hardware measures them.
#ifndef KILN_SERVER_SENSORS_READINGS_H_
#define KILN_SERVER_SENSORS_READINGS_H_

#include <optional>

namespace kiln::sensors {

// nullopt: the device has no such sensor, or it cannot be read.
struct Readings {
  std::optional<double> celsius;
  std::optional<double> watts;
  std::optional<double> clock_hertz;
};

}  // namespace kiln::sensors

#endif  // KILN_SERVER_SENSORS_READINGS_H_
