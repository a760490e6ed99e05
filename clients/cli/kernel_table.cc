#include "clients/cli/kernel_table.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/format.h"
#include "clients/cli/table.h"

namespace kiln::cli {

double SecondsPerRun(const v1::Kernel& kernel) { return kernel.seconds_mean() * kernel.launches(); }

void PrintKernels(const google::protobuf::RepeatedPtrField<v1::Kernel>& kernels,
                  std::ostream& out) {
  double total = 0;
  for (const v1::Kernel& kernel : kernels) total += SecondsPerRun(kernel);
  Table table({">#", "kernel", "digest", ">launches", ">mean", ">best", ">share", ">compute",
               ">memory", ">samples", ">compile"});
  int number = 0;
  for (const v1::Kernel& kernel : kernels) {
    const double share = total > 0 ? SecondsPerRun(kernel) / total : 0;
    table.Add({absl::StrCat(++number), kernel.name(), ShortDigest(kernel.digest()),
               absl::StrCat(kernel.launches()), Duration(kernel.seconds_mean()),
               Duration(kernel.seconds_min()), total > 0 ? Percent(share) : "-",
               Rate(static_cast<double>(kernel.flops()), kernel.seconds_mean(), "FLOP"),
               Rate(static_cast<double>(kernel.bytes()), kernel.seconds_mean(), "B"),
               absl::StrCat(kernel.samples()),
               kernel.from_cache() ? "cached" : Duration(kernel.compile_seconds())});
  }
  table.Print(out);
}

}  // namespace kiln::cli
