// Sensors that Linux shows in sysfs. Source: Documentation/hwmon/sysfs-interface.rst and
// Documentation/admin-guide/pm/cpufreq.rst of Linux.
#ifndef KILN_SERVER_SENSORS_HWMON_H_
#define KILN_SERVER_SENSORS_HWMON_H_

#include <string>

#include "server/sensors/readings.h"

namespace kiln::sensors {

// `sysfs` is "/sys", except in tests. Both functions read few small files, and may wait for the
// hardware.
//
// Reads the device at this PCI address ("0000:03:00.0"), if its driver shows sensors: those of
// AMD's and Intel's GPUs do, NVIDIA's does not.
Readings ReadPciDevice(const std::string& sysfs, const std::string& pci_address);
// Reads the processors: the highest temperature of them, and the mean clock of all cores. Their
// power can be read only by root.
Readings ReadProcessors(const std::string& sysfs);

}  // namespace kiln::sensors

#endif  // KILN_SERVER_SENSORS_HWMON_H_
