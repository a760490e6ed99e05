#include "clients/cli/kernel_table.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/format.h"

namespace kiln::cli {

double SecondsPerRun(const v1::Kernel& kernel) {
  return kernel.seconds_median() * kernel.launches();
}

std::string MedianText(const v1::Kernel& kernel) {
  return absl::StrCat(Duration(kernel.seconds_median()), kernel.cold() ? " (cold)" : "");
}

Table KernelTable(const google::protobuf::RepeatedPtrField<v1::Kernel>& kernels) {
  double total = 0;
  for (const v1::Kernel& kernel : kernels) total += SecondsPerRun(kernel);
  Table table({">#", "kernel", "digest", ">launches", ">median", ">best", ">share", ">compute",
               ">memory", ">samples", ">compile"});
  uint64_t number = 0;
  for (const v1::Kernel& kernel : kernels) {
    const double share = total > 0 ? SecondsPerRun(kernel) / total : 0;
    table.Add({CountCell(++number), kernel.name(), ShortDigest(kernel.digest()),
               CountCell(kernel.launches()), Cell(MedianText(kernel), kernel.seconds_median()),
               DurationCell(kernel.seconds_min()), total > 0 ? PercentCell(share) : Cell("-"),
               RateCell(static_cast<double>(kernel.flops()), kernel.seconds_median(), "FLOP"),
               RateCell(static_cast<double>(kernel.bytes()), kernel.seconds_median(), "B"),
               CountCell(kernel.samples()),
               kernel.from_cache() ? Cell("cached") : DurationCell(kernel.compile_seconds())});
  }
  return table;
}

}  // namespace kiln::cli
