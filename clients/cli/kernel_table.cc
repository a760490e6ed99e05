#include "clients/cli/kernel_table.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"

namespace kiln::cli {

double SecondsPerRun(const v1::Kernel& kernel) {
  return kernel.seconds_median() * kernel.launches();
}

std::string MedianText(const v1::Kernel& kernel) {
  return absl::StrCat(Duration(kernel.seconds_median()), kernel.cold() ? " (cold)" : "");
}

void PrintKernels(const google::protobuf::RepeatedPtrField<v1::Kernel>& kernels,
                  std::ostream& out) {
  double total = 0;
  for (const v1::Kernel& kernel : kernels) total += SecondsPerRun(kernel);
  Table table({">#", "kernel", "digest", ">launches", ">median", ">best", ">share", ">compute",
               ">memory", ">samples", ">compile"});
  int number = 0;
  for (const v1::Kernel& kernel : kernels) {
    const double share = total > 0 ? SecondsPerRun(kernel) / total : 0;
    table.Add({absl::StrCat(++number), kernel.name(), ShortDigest(kernel.digest()),
               absl::StrCat(kernel.launches()), MedianText(kernel), Duration(kernel.seconds_min()),
               total > 0 ? Percent(share) : "-",
               Rate(static_cast<double>(kernel.flops()), kernel.seconds_median(), "FLOP"),
               Rate(static_cast<double>(kernel.bytes()), kernel.seconds_median(), "B"),
               absl::StrCat(kernel.samples()),
               kernel.from_cache() ? "cached" : Duration(kernel.compile_seconds())});
  }
  table.Print(out);
}

}  // namespace kiln::cli
