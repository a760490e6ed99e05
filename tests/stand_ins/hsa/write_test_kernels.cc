// Writes the code objects for the driver's own tests, since drivers do not know the compiler:
// kernels of 1 and 2 arguments, each a buffer of 32-bit numbers. One thread adds 1 to the first
// number of the last buffer. counter_1.co takes addresses, table_counter_1.co a slot table.
//
// usage: write_hsa_test_kernels FOLDER
#include <cstdio>
#include <fstream>
#include <string>

#include "compiler/codegen/amdgcn/amdgcn.h"
#include "compiler/codegen/testing/ir_text.h"
#include "drivers/interface/kernel_image.h"

namespace {

std::string CounterIr(int arguments, bool by_table) {
  const std::string last = std::to_string(arguments - 1);
  std::string parameters = by_table ? "ptr addrspace(1) %table, " : "";
  for (int i = 0; i < arguments; ++i) {
    parameters += std::string(i > 0 ? ", " : "") + (by_table ? "i64" : "ptr addrspace(1)") + " %p" +
                  std::to_string(i);
  }
  std::string find = "  %at = getelementptr i8, ptr addrspace(1) %p" + last + ", i64 0\n";
  if (by_table) {
    find = "  %slot = lshr i64 %p" + last + ", " + std::to_string(kiln::drivers::kSlotOffsetBits) +
           "\n  %entry = getelementptr i64, ptr addrspace(1) %table, i64 %slot\n"
           "  %base = load ptr addrspace(1), ptr addrspace(1) %entry\n  %offset = and i64 %p" +
           last + ", " + std::to_string(kiln::drivers::kSlotOffsetMask) +
           "\n  %at = getelementptr i8, ptr addrspace(1) %base, i64 %offset\n";
  }
  return "define protected amdgpu_kernel void @kernel(" + parameters + ") #0 {\n" + find +
         "  %old = load i32, ptr addrspace(1) %at\n  %new = add i32 %old, 1\n"
         "  store i32 %new, ptr addrspace(1) %at\n  ret void\n}\n"
         "attributes #0 = { nounwind \"amdgpu-flat-work-group-size\"=\"1,1\" "
         "\"amdgpu-no-implicitarg-ptr\" \"amdgpu-no-dispatch-ptr\" \"amdgpu-no-queue-ptr\" "
         "\"amdgpu-no-dispatch-id\" \"amdgpu-no-lds-kernel-id\" \"amdgpu-no-workgroup-id-y\" "
         "\"amdgpu-no-workgroup-id-z\" \"amdgpu-no-workitem-id-y\" \"amdgpu-no-workitem-id-z\" "
         "\"amdgpu-no-heap-ptr\" \"amdgpu-no-hostcall-ptr\" \"amdgpu-no-default-queue\" "
         "\"amdgpu-no-completion-action\" \"amdgpu-no-multigrid-sync-arg\" }\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  kiln::drivers::Target target;
  target.architecture = std::string(kiln::codegen::kAmdgcnArchitecture);
  target.processor = "gfx1100";
  target.limits.threads_per_subgroup = 32;
  for (int arguments : {1, 2}) {
    for (bool by_table : {false, true}) {
      const auto object =
          kiln::codegen::EmitCodeObjectFromText(CounterIr(arguments, by_table), target);
      if (!object.ok()) {
        std::fprintf(stderr, "%s\n", object.status().ToString().c_str());
        return 1;
      }
      std::ofstream out(std::string(argv[1]) + (by_table ? "/table_counter_" : "/counter_") +
                            std::to_string(arguments) + ".co",
                        std::ios::binary);
      out << *object;
    }
  }
  return 0;
}
