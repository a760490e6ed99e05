// The driver on the stand-in for CUDA's library.
#ifndef KILN_DRIVERS_CUDA_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_CUDA_TESTING_STAND_IN_FIXTURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "drivers/common/queued_device/testing/stand_in_fixture.h"
#include "drivers/cuda/api.h"
#include "drivers/cuda/driver.h"
#include "tests/stand_ins/cuda/control.h"

namespace kiln::drivers::cuda {

struct StandIn {
  using Driver = CudaDriver;
  using Options = CudaOptions;
  using Control = stand_ins::cuda::Control;
  static constexpr char kName[] = "cuda";
  static constexpr char kInstall[] = "install NVIDIA's driver 525";
  static constexpr char kTooOld[] = "too old (libm.so.6 has no symbol cu";
  static constexpr char kLibrary[] = KILN_CUDA_STAND_IN;
  static constexpr char kControl[] = "KilnCudaStandInControl";
  static constexpr const char* kMessage = "KilnCudaStandInMessage";
  static constexpr char kLost[] = "CUDA_ERROR_ECC_UNCORRECTABLE";
  static constexpr char kFailed[] = "CUDA_ERROR_LAUNCH_FAILED";
  static constexpr char kFault[] = "CUDA_ERROR_ILLEGAL_ADDRESS (700)";
  static constexpr char kKernel[] = "counter";
  static constexpr char kArchitecture[] = "nvptx64";
  static constexpr bool kComputes = true;

  static void Reset(Control& control) {
    control.driver_version = 13000;
    control.compute_capability = 80;
    control.memory_bytes = int64_t{2} << 30;
    control.bytes_moved_max = INT64_MAX;
    control.init_fails = 0;
    control.next_load_fails = 0;
    control.next_launch_refused = 0;
    control.next_launch_fails = 0;
  }
  static void SetDevices(Control& control, int devices) {
    control.devices = devices;
    control.peers = true;
  }
  static void Separate(Control& control) { control.peers = false; }
  static void Lose(Control& control) { control.lost = CUDA_ERROR_ECC_UNCORRECTABLE; }
  static void Recover(Control& control) { control.lost = control.lost_device = 0; }
  static void FailNextList(Control& control) {
    control.next_launch_fails = CUDA_ERROR_LAUNCH_FAILED;
  }
  static void FaultInNextList(Control& control) {
    control.next_launch_fails = CUDA_ERROR_ILLEGAL_ADDRESS;
  }

  static std::string Code(int arguments, bool by_table) {
    std::string code = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry kernel(";
    if (by_table) code += ".param .u64 table, ";
    for (int i = 0; i < arguments; ++i)
      absl::StrAppend(&code, i > 0 ? ", " : "", ".param .u64 p", i);
    absl::StrAppend(&code, ") {\n.reg .b64 %t, %s, %a;\n.reg .b32 %v;\nld.param.u64 %a, [p",
                    arguments - 1, "];\n");
    if (by_table) {
      absl::StrAppend(&code, "ld.param.u64 %t, [table];\nshr.u64 %s, %a, ", kSlotOffsetBits,
                      ";\nshl.b64 %s, %s, 3;\nadd.s64 %t, %t, %s;\nld.global.nc.u64 %s, [%t];\n",
                      "and.b64 %a, %a, ", kSlotOffsetMask, ";\nadd.s64 %a, %a, %s;\n");
    }
    return code + "ld.global.u32 %v, [%a];\nadd.u32 %v, %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n";
  }
  // Counts that a replay with other buffers does not change, and how often lists reach the device.
  static int64_t Recorded(const Control& control) {
    return control.graph_nodes_added + control.graph_nodes_updated;
  }
  static int64_t Launched(const Control& control) { return control.graphs_launched; }
};

using CudaTest = drivers::testing::StandInFixture<StandIn>;

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_TESTING_STAND_IN_FIXTURE_H_
