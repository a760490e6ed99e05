// How a test loses a stand-in's device.
#ifndef KILN_TESTS_STAND_INS_LOSS_H_
#define KILN_TESTS_STAND_INS_LOSS_H_

#include <atomic>

namespace kiln::stand_ins {

// Codes are the vendor's, 0 for none.
struct Loss {
  std::atomic<int> lost = 0;  // the error of the lost device
  std::atomic<int> lost_device = 0;
  // After this many more kernels on this device, `lost` becomes `lost_then`; 0: never.
  std::atomic<int> kernels_until_lost = 0;
  std::atomic<int> lost_then = 0;

  // For the stand-in: a kernel has run on this device.
  void HasRunOn(int device) {
    if (lost_device != device || kernels_until_lost == 0) return;
    if (--kernels_until_lost == 0) lost = lost_then.load();
  }
};

}  // namespace kiln::stand_ins

#endif  // KILN_TESTS_STAND_INS_LOSS_H_
