// A scheduled kernel as OpenCL C: what OpenCL drivers compile, and what `explain` shows people of
// every kernel.
#ifndef KILN_COMPILER_CODEGEN_C_SOURCE_H_
#define KILN_COMPILER_CODEGEN_C_SOURCE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::codegen {

// The kernel's name in the source, whatever the program is called.
inline constexpr char kOpenClEntry[] = "kiln_kernel";
// What the source is compiled with (OpenCL 1.2). Without the second option, which a device may lack
// (CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT), float32's quotients and square roots are rounded
// differently.
inline constexpr char kOpenClBuildOptions[] =
    "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt";
// A work-item's own memory: more than this is not offered to a device.
inline constexpr int64_t kOpenClPrivateBytesMax = 64 << 10;

// How a kernel's function is told where its arguments are: by pointers to them, or by a slot table
// and a number for each (drivers/interface/kernel_image.h).
enum class Parameters { kPointers, kSlotTable };

// The whole program of one kernel, which was synchronized. Its arguments are the buffers in global
// memory, in order. Where tasks have threads, a work-group of just so many work-items runs each.
// Else it takes one work-item for each task, numbered by get_global_id(0); those beyond grid_size()
// do nothing, so that any local size will do.
//
// Ranges are named by what their loop is: p0, p1, … for tasks, i0, … for serial loops, u0, … for
// unrolled ones, v0, … for vector lanes, w0, … for threads. Values that a statement needs more than
// once stand in constants t0, t1, …. Meanings are those of compiler/ops; exp2, log2, sin, exp, log,
// cos and pow are as exact as the device's own are, which is 4 units in the last place of float32
// or better, but 16 of pow (OpenCL 1.2, 7.4).
std::string PrintSource(const schedule::LoopProgram& program,
                        Parameters parameters = Parameters::kPointers);

// Whether the source of every schedule means what the node does.
bool HasOpenClSource(const ir::Node* node);
// What the source keeps for each thread.
int64_t OpenClPrivateBytes(const schedule::LoopProgram& program);
// UNIMPLEMENTED: this schedule needs more private memory than kOpenClPrivateBytesMax.
absl::Status CheckOpenClSupported(const schedule::LoopProgram& program);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_C_SOURCE_H_
