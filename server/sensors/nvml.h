// Sensors of NVIDIA's GPUs, which NVIDIA's management library reads. It comes with the driver.
#ifndef KILN_SERVER_SENSORS_NVML_H_
#define KILN_SERVER_SENSORS_NVML_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/sensors/readings.h"

namespace kiln::sensors {

// Used by one thread at a time. Calls may wait for a GPU that hangs.
class Nvml {
 public:
  virtual ~Nvml() = default;
  // Reads the GPU at this PCI address ("0000:3b:00.0").
  virtual Readings Read(const std::string& pci_address) = 0;
};

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// NOT_FOUND: the library is not installed or too old. UNAVAILABLE: it finds no driver.
absl::StatusOr<std::unique_ptr<Nvml>> OpenNvml(const std::string& library = kNvmlLibrary);

}  // namespace kiln::sensors

#endif  // KILN_SERVER_SENSORS_NVML_H_
