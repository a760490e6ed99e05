// Descriptions of devices, as their drivers would give them, for tests of schedules.
#ifndef KILN_TESTS_GOLDEN_DEVICES_H_
#define KILN_TESTS_GOLDEN_DEVICES_H_

#include <string>
#include <vector>

#include "drivers/interface/target.h"

namespace kiln::golden {

struct DescribedDevice {
  std::string name;
  bool lanes_are_threads = false;
  drivers::Target target;
};

// Cores with 4, 8 and 16 lanes, and a GPU of each driver that compiles for one.
std::vector<DescribedDevice> DescribedDevices();

}  // namespace kiln::golden

#endif  // KILN_TESTS_GOLDEN_DEVICES_H_
