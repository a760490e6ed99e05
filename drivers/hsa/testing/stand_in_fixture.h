// The driver on the stand-in for HSA's runtime.
#ifndef KILN_DRIVERS_HSA_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_HSA_TESTING_STAND_IN_FIXTURE_H_

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "drivers/common/queued_device/testing/stand_in_fixture.h"
#include "drivers/hsa/api.h"
#include "drivers/hsa/driver.h"
#include "tests/stand_ins/hsa/control.h"

namespace kiln::drivers::hsa {

struct StandIn {
  using Driver = HsaDriver;
  using Options = HsaOptions;
  using Control = stand_ins::hsa::Control;
  static constexpr char kName[] = "hsa";
  static constexpr char kInstall[] = "install ROCm 5.4 or newer";
  static constexpr char kTooOld[] = "too old (libm.so.6 has no symbol hsa_";
  static constexpr char kLibrary[] = KILN_HSA_STAND_IN;
  static constexpr char kControl[] = "KilnHsaStandInControl";
  static constexpr const char* kMessage = "KilnHsaStandInMessage";
  static constexpr char kLost[] = "HSA_STATUS_ERROR_EXCEPTION";
  static constexpr char kFailed[] = "HSA_STATUS_ERROR_MEMORY_FAULT";
  static constexpr char kFault[] = "the device is lost: its queue failed: 0x2b";
  static constexpr char kKernel[] = "counter";
  static constexpr char kArchitecture[] = "amdgcn";
  static constexpr bool kComputes = true;

  static void Reset(Control& control) {
    control.isa = "amdgcn-amd-amdhsa--gfx1100:kiln-host-twin+";
    control.wave = 32;
    control.memory_bytes = int64_t{2} << 30;
    control.queue_packets_max = 4096;
    control.init_fails = 0;
    control.next_load_fails = 0;
    control.next_copy_fails = 0;
    control.next_launch_fails = 0;
  }
  static void SetDevices(Control& control, int devices) {
    control.devices = devices;
    control.peers = true;
  }
  static void Separate(Control& control) { control.peers = false; }
  static void Lose(Control& control) { control.lost = HSA_STATUS_ERROR_EXCEPTION; }
  static void Recover(Control& control) { control.lost = control.lost_device = 0; }
  static void FailNextList(Control& control) {
    control.next_launch_fails = HSA_STATUS_ERROR_MEMORY_FAULT;
  }
  static void FaultInNextList(Control& control) { FailNextList(control); }

  // For 1 or 2 arguments.
  static std::string Code(int arguments, bool by_table) {
    std::ifstream file(absl::StrCat(KILN_HSA_TEST_KERNELS,
                                    by_table ? "/table_counter_" : "/counter_", arguments, ".co"),
                       std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
};

using HsaTest = drivers::testing::StandInFixture<StandIn>;

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_TESTING_STAND_IN_FIXTURE_H_
