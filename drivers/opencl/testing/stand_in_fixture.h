// The driver on the stand-in for OpenCL's library.
#ifndef KILN_DRIVERS_OPENCL_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_OPENCL_TESTING_STAND_IN_FIXTURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "drivers/common/queued_device/testing/stand_in_fixture.h"
#include "drivers/opencl/driver.h"
#include "tests/stand_ins/opencl/control.h"

namespace kiln::drivers::opencl {

inline constexpr int kOutOfResources = -5;  // CL_OUT_OF_RESOURCES

struct StandIn {
  using Driver = OpenClDriver;
  using Options = OpenClOptions;
  using Control = stand_ins::opencl::Control;
  static constexpr char kName[] = "opencl";
  static constexpr char kInstall[] = "install ocl-icd-libopencl1";
  static constexpr char kTooOld[] = "broken (libm.so.6 has no symbol cl";
  static constexpr char kLibrary[] = KILN_OPENCL_STAND_IN;
  static constexpr char kControl[] = "KilnOpenClStandInControl";
  static constexpr const char* kMessage = nullptr;
  static constexpr char kLost[] = "CL_OUT_OF_RESOURCES";
  static constexpr char kFailed[] = "CL_OUT_OF_RESOURCES";
  static constexpr const char* kFault = kLost;
  static constexpr char kKernel[] = "mixer";
  static constexpr char kArchitecture[] = "opencl-c";
  static constexpr bool kComputes = false;

  static void Reset(Control& control) {
    control.has_platform = true;
    control.cpus = 1;
    control.has_shared_virtual_memory = true;
    control.reaches_all_memory = false;
    control.next_launch_refused = 0;
    control.next_launch_fails = 0;
    control.unplugged = false;
    control.gpus_share_memory = false;
    control.has_command_buffers = false;
    control.command_buffer_capabilities = 0;
    control.required_queue_properties = 0;
    control.recorded_launches_max = 1 << 20;
    control.kernel = nullptr;
    control.finalize_refused = 0;
    control.next_buffer_refused = 0;
    control.next_buffer_fails = 0;
    control.driver_version = 1;
    control.gives_binaries = true;
    control.binary_form = 1;
  }
  static void SetDevices(Control& control, int devices) { control.gpus = devices; }
  static void Separate(Control& control) {}
  static void Lose(Control& control) { control.lost = true; }
  static void Recover(Control& control) { control.lost = false; }
  static void FailNextList(Control& control) { control.next_launch_fails = kOutOfResources; }
  static void FaultInNextList(Control& control) { Lose(control); }

  static std::string Code(int arguments, bool by_table) {
    std::string code = "__kernel void any_name(";
    if (by_table) code += "__global const ulong* table, ";
    for (int i = 0; i < arguments; ++i)
      absl::StrAppend(&code, i > 0 ? ", " : "", by_table ? "ulong p" : "__global float* p", i);
    return code + ") {}";
  }
  // How often the stand-in built a kernel, and loaded a binary.
  static int64_t Built(const Control& control) { return control.sources_built; }
  static int64_t Loaded(const Control& control) { return control.binaries_built; }
  // The next build fails.
  static void Spoil(Control& control, KernelImage& image) { image.code = "#error"; }
  static constexpr char kSpoilt[] = "the kernel mixer cannot be compiled:\nline 1: wrong";
  // Binaries made before are refused.
  static void Update(Control& control) {
    control.driver_version = 2;
    control.binary_form = 2;
  }
  static constexpr char kRefused[] =
      "the binary of the kernel mixer was refused: CL_INVALID_BINARY (-42)";
};

using OpenClTest = drivers::testing::StandInFixture<StandIn>;

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_TESTING_STAND_IN_FIXTURE_H_
