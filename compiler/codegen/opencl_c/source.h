// A scheduled kernel as OpenCL C: OpenCL drivers compile it, and `explain` shows it for every
// kernel.
#ifndef KILN_COMPILER_CODEGEN_OPENCL_C_SOURCE_H_
#define KILN_COMPILER_CODEGEN_OPENCL_C_SOURCE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"

namespace kiln::codegen {

// The kernel's name in the source, whatever the program's name is.
inline constexpr char kOpenClEntry[] = "kiln_kernel";
// The options with which the source is compiled (OpenCL 1.2). Without the second one, which a
// device may lack (CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT), float32 quotients and square roots are
// rounded differently.
inline constexpr char kOpenClBuildOptions[] =
    "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt";
// The maximum private memory of a work-item.
inline constexpr int64_t kOpenClPrivateBytesMax = 64 << 10;

// How a kernel's function gets its arguments: as pointers, or by a slot table and a number for each
// (drivers/interface/kernel_image.h).
enum class Parameters { kPointers, kSlotTable };

// Returns the whole program of one kernel. Requires: it is synchronized. Its arguments are the
// buffers in global memory, in order. If tasks have threads, a work-group of exactly that many
// work-items runs each task. Otherwise one work-item runs each task, numbered by get_global_id(0).
// Work-items from grid_size() on do nothing, so that any local size is allowed.
//
// Ranges are named by the kind of their loop: p0, p1, … for tasks, i0, … for serial loops, u0, …
// for unrolled ones, v0, … for vector lanes, w0, … for threads. Values that a statement needs more
// than once are constants t0, t1, …. Meanings are those of compiler/ops. exp2, log2, sin, exp, log,
// cos and pow are as exact as the device's own functions: 4 units in the last place of float32 or
// better, but 16 for pow (OpenCL 1.2, 7.4).
std::string PrintSource(const schedule::LoopProgram& program,
                        Parameters parameters = Parameters::kPointers);

// Returns whether the source, with every schedule, computes what the node means.
bool HasOpenClSource(const ir::Node* node);
// Returns the private bytes that the source needs for each thread.
int64_t OpenClPrivateBytes(const schedule::LoopProgram& program);
// Returns UNIMPLEMENTED if this schedule needs more private memory than kOpenClPrivateBytesMax.
absl::Status CheckOpenClSupported(const schedule::LoopProgram& program);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_OPENCL_C_SOURCE_H_
