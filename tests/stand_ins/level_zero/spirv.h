// The properties of a SPIR-V module that the stand-in needs to check kernel calls.
#ifndef KILN_TESTS_STAND_INS_LEVEL_ZERO_SPIRV_H_
#define KILN_TESTS_STAND_INS_LEVEL_ZERO_SPIRV_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::stand_ins::level_zero {

struct EntryPoint {
  std::string name;
  struct Parameter {
    size_t bytes = 0;
    bool is_pointer = false;  // to global memory
  };
  std::vector<Parameter> parameters;
  uint32_t group_size[3] = {0, 0, 0};  // required by the module; zeros: any
};

struct SpirvModule {
  std::vector<EntryPoint> entry_points;
  size_t shared_bytes = 0;
  uint32_t minor_version = 0;
  // Whether it converts numbers to pointers, which must be declared to Level Zero (indirect
  // access).
  bool makes_pointers = false;
};

// Returns why `bytes` is not a module, or has parameters of unsupported types; else empty.
std::string ReadSpirv(const std::string& bytes, SpirvModule* module);

}  // namespace kiln::stand_ins::level_zero

#endif  // KILN_TESTS_STAND_INS_LEVEL_ZERO_SPIRV_H_
