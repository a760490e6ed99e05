// Runs small PTX texts on vectors.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_TESTING_RUN_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_TESTING_RUN_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/stand_ins/cuda/ptx/interpret.h"
#include "tests/stand_ins/cuda/ptx/load.h"

namespace kiln::stand_ins::ptx {

// Device memory at addresses other than the host's.
class TestMemory {
 public:
  Region Allocate(int64_t bytes) {
    blocks_.push_back(std::make_unique<std::vector<uint64_t>>((bytes + 7) / 8));
    const Region region{next_, static_cast<uint64_t>(bytes),
                        reinterpret_cast<uint8_t*>(blocks_.back()->data())};
    next_ += uint64_t{1} << 24;
    regions_.push_back(region);
    return region;
  }
  template <typename T>
  Region Hold(const std::vector<T>& values) {
    const Region region = Allocate(static_cast<int64_t>(values.size() * sizeof(T)));
    if (!values.empty()) std::memcpy(region.host, values.data(), values.size() * sizeof(T));
    return region;
  }
  template <typename T>
  static std::vector<T> Values(const Region& region) {
    std::vector<T> values(region.bytes / sizeof(T));
    std::memcpy(values.data(), region.host, region.bytes);
    return values;
  }
  GlobalMemory memory() const { return GlobalMemory(regions_); }

 private:
  uint64_t next_ = uint64_t{0x70} << 40;
  std::vector<Region> regions_;
  std::vector<std::unique_ptr<std::vector<uint64_t>>> blocks_;
};

inline absl::StatusOr<std::unique_ptr<LoadedModule>> LoadTest(const std::string& text,
                                                              TestMemory& memory) {
  return Load(text, [&](int64_t bytes, int64_t) { return memory.Allocate(bytes); });
}

// Runs the text's entry `k` with the regions as arguments.
inline LaunchResult RunKernel(const std::string& text, TestMemory& memory,
                              const std::vector<Region>& arguments, const LaunchShape& shape = {},
                              const LaunchOptions& options = {}) {
  auto loaded = LoadTest(text, memory);
  if (!loaded.ok()) {
    ADD_FAILURE() << loaded.status();
    return {};
  }
  const DecodedFunction* entry = (*loaded)->program.FindEntry("k");
  if (entry == nullptr) {
    ADD_FAILURE() << "no entry k";
    return {};
  }
  std::vector<uint8_t> parameters;
  for (const Region& region : arguments)
    for (int i = 0; i < 8; ++i) parameters.push_back(region.address >> (8 * i) & 0xff);
  return Launch((*loaded)->program, *entry, shape, parameters, memory.memory(), options);
}

// An entry k(in, out) around a body: %in and %out are its pointers, %t is the thread's number.
// There are twenty registers of each kind: %p %h %r %d (b64) %f %g (f64).
inline std::string Kernel(const std::string& body, const std::string& before = "") {
  return absl::StrCat(".version 8.0\n.target sm_90\n.address_size 64\n", before,
                      ".visible .entry k(.param .u64 k_0, .param .u64 k_1)\n{\n",
                      ".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %d<20>;\n",
                      ".reg .f32 %f<20>; .reg .f64 %g<20>; .reg .b64 %in; .reg .b64 %out;\n",
                      ".reg .b32 %t; .reg .b64 %own;\n",
                      "ld.param.u64 %in, [k_0]; ld.param.u64 %out, [k_1]; mov.u32 %t, %tid.x;\n",
                      body, "\nret;\n}\n");
}

// Returns the values that the body stores at [%out], computed from the values at [%in], by one
// thread.
template <typename Out, typename In>
std::vector<Out> Evaluate(const std::string& body, const std::vector<In>& in, size_t results = 1) {
  TestMemory memory;
  const Region from = memory.Hold(in);
  const Region to = memory.Allocate(static_cast<int64_t>(results * sizeof(Out)));
  const LaunchResult result = RunKernel(Kernel(body), memory, {from, to});
  EXPECT_EQ(result.fault.message, "");
  return TestMemory::Values<Out>(to);
}

// Runs an instruction of 32-bit registers on bits: `instruction %r9, %r0, %r1, %r2`.
inline uint32_t Bits(const std::string& instruction, const std::vector<uint32_t>& operands) {
  std::string body;
  std::string call = absl::StrCat(instruction, " %r9");
  for (size_t i = 0; i < operands.size(); ++i) {
    absl::StrAppend(&body, "ld.global.u32 %r", i, ", [%in+", 4 * i, "];\n");
    absl::StrAppend(&call, ", %r", i);
  }
  return Evaluate<uint32_t>(absl::StrCat(body, call, ";\nst.global.u32 [%out], %r9;"), operands)[0];
}

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_TESTING_RUN_H_
