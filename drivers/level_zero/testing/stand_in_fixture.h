// The driver on the stand-in for Level Zero's loader, whose kernels run on the host here.
#ifndef KILN_DRIVERS_LEVEL_ZERO_TESTING_STAND_IN_FIXTURE_H_
#define KILN_DRIVERS_LEVEL_ZERO_TESTING_STAND_IN_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "drivers/common/queued_device/testing/stand_in_fixture.h"
#include "drivers/level_zero/api_types.h"
#include "drivers/level_zero/driver.h"
#include "tests/stand_ins/level_zero/control.h"

namespace kiln::drivers::level_zero {

struct StandIn {
  using Driver = LevelZeroDriver;
  using Options = LevelZeroOptions;
  using Control = stand_ins::level_zero::Control;
  static constexpr char kName[] = "level_zero";
  static constexpr char kInstall[] = "install libze1 and Intel's driver";
  static constexpr char kTooOld[] = "too old (libm.so.6 has no symbol ze";
  static constexpr char kLibrary[] = KILN_LEVEL_ZERO_STAND_IN;
  static constexpr char kControl[] = "KilnLevelZeroStandInControl";
  static constexpr const char* kMessage = "KilnLevelZeroStandInMessage";
  static constexpr char kLost[] = "ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)";
  static constexpr char kFailed[] = "ZE_RESULT_ERROR_UNKNOWN";
  static constexpr const char* kFault = kLost;
  static constexpr char kKernel[] = "counter";
  static constexpr char kArchitecture[] = "spirv64";
  static constexpr bool kComputes = true;

  static void Reset(Control& control) {
    control.host_kernels = true;
    control.integrated = false;
    control.fp64 = true;
    control.copy_queues = true;
    control.driver_version = 1;
    control.spirv_minor = 4;
    control.memory_bytes = int64_t{2} << 30;
    control.allocation_bytes_max = int64_t{1} << 30;
    control.block_threads_max = 1024;
    control.gives_binaries = true;
    control.init_fails = 0;
    control.next_build_fails = false;
    control.next_execution_refused = 0;
    control.next_append_refused = 0;
    control.kernels_until_lost = 0;
  }
  static void SetDevices(Control& control, int devices) { control.devices = devices; }
  static void Separate(Control& control) {}
  static void Lose(Control& control) { control.lost = ZE_RESULT_ERROR_DEVICE_LOST; }
  static void Recover(Control& control) { control.lost = control.lost_device = 0; }
  static void FailNextList(Control& control) {
    control.next_execution_refused = ZE_RESULT_ERROR_UNKNOWN;
  }
  static void FaultInNextList(Control& control) {
    control.lost_then = ZE_RESULT_ERROR_DEVICE_LOST;
    control.kernels_until_lost = 1;
  }

  // A module with one entry point, "kernel", that does nothing. Its parameters are `arguments`
  // pointers or, with a slot table, the table and `arguments` numbers. `block`: the required
  // threads of a block; 0: any.
  static std::string Spirv(int arguments, bool takes_table, uint32_t block = 0) {
    enum : uint32_t { kVoid = 1, kLong, kPointer, kFunctionType, kFunction, kLabel, kMade, kFirst };
    const auto parameters = static_cast<uint32_t>(arguments + (takes_table ? 1 : 0));
    std::vector<uint32_t> words = {0x07230203, 0x00010200, 0, kFirst + parameters, 0};
    const auto add = [&words](uint32_t opcode, const std::vector<uint32_t>& operands) {
      words.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
      words.insert(words.end(), operands.begin(), operands.end());
    };
    const auto type_of = [&](uint32_t i) { return takes_table && i > 0 ? kLong : kPointer; };
    for (const uint32_t capability : {6u, 4u, 11u}) add(17, {capability});
    add(14, {2, 2});                                  // Physical64, OpenCL
    add(15, {6, kFunction, 0x6e72656b, 0x00006c65});  // "kernel"
    if (block > 0) add(16, {kFunction, 17, block, 1, 1});
    add(19, {kVoid});
    add(21, {kLong, 64, 0});
    add(32, {kPointer, 5, kLong});
    std::vector<uint32_t> signature = {kFunctionType, kVoid};
    for (uint32_t i = 0; i < parameters; ++i) signature.push_back(type_of(i));
    add(33, signature);
    add(54, {kVoid, kFunction, 0, kFunctionType});
    for (uint32_t i = 0; i < parameters; ++i) add(55, {type_of(i), kFirst + i});
    add(248, {kLabel});
    if (takes_table && parameters > 1) add(120, {kPointer, kMade, kFirst + 1});
    add(253, {});
    add(56, {});
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t)};
  }

  static std::string Code(int arguments, bool by_table) { return Spirv(arguments, by_table); }
  // Counts that a replay with other buffers does not change, and how often lists reach the device.
  static int64_t Recorded(const Control& control) {
    return control.commands_appended + control.arguments_set;
  }
  static int64_t Launched(const Control& control) { return control.executions; }
  // How often the stand-in built a kernel, and loaded a binary.
  static int64_t Built(const Control& control) { return control.modules_built; }
  static int64_t Loaded(const Control& control) { return control.binaries_loaded; }
  // The next build fails.
  static void Spoil(Control& control, KernelImage& image) { control.next_build_fails = true; }
  static constexpr char kSpoilt[] = "the kernel counter cannot be built:\nline 1: wrong";
  // Binaries made before are refused.
  static void Update(Control& control) { control.driver_version = 2; }
  static constexpr char kRefused[] =
      "the binary of the kernel counter was refused: ZE_RESULT_ERROR_INVALID_NATIVE_BINARY "
      "(0x7800000f)";
};

using LevelZeroTest = drivers::testing::StandInFixture<StandIn>;

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_TESTING_STAND_IN_FIXTURE_H_
