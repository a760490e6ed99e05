// The division of a program's device time among its kernels.
#ifndef KILN_SERVER_METRICS_KERNEL_SHARES_H_
#define KILN_SERVER_METRICS_KERNEL_SHARES_H_

#include <string>
#include <vector>

namespace kiln::metrics {

// All shares add up to 1.
struct KernelShares {
  struct Share {
    std::string kernel;
    double share = 0;
  };
  std::vector<Share> kernels;
  double outside = 0;  // copies, waits for other devices, and gaps between kernels
};

}  // namespace kiln::metrics

#endif  // KILN_SERVER_METRICS_KERNEL_SHARES_H_
