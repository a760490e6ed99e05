#include "drivers/interface/costs.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace kiln::drivers {

std::string Costs::Key() const {
  const StorageCosts& s = storage;
  const InstructionCosts& i = instructions;
  const ContractionCosts& c = contraction;
  return absl::StrJoin(
      {s.operation,
       s.division,
       s.transcendental,
       s.power,
       s.write,
       i.broadcast,
       i.load,
       i.store,
       i.masked,
       i.shuffled_load,
       i.gather,
       i.scatter,
       i.horizontal,
       i.task_min,
       i.task_max,
       c.multiplies_per_cycle,
       c.loads_per_cycle,
       c.multiply_latency,
       c.step,
       c.load,
       c.far_vector,
       c.copy,
       c.copy_across},
      ",", [](std::string* key, double cost) { absl::StrAppendFormat(key, "%.10g", cost); });
}

Rates GpuRates(double flops_per_second, double bytes_per_second, int units) {
  Rates rates = kGpuRates;
  if (flops_per_second > 0) rates.flops_per_second = flops_per_second;
  if (bytes_per_second > 0) rates.bytes_per_second = bytes_per_second;
  rates.unit_flops_per_second = rates.flops_per_second / units;
  rates.unit_bytes_per_second = rates.bytes_per_second / units;
  return rates;
}

}  // namespace kiln::drivers
