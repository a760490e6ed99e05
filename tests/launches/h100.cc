#include "tests/launches/h100.h"

#include <utility>

#include "drivers/cuda/device_query.h"

namespace kiln::launches {
namespace {

int Answer(drivers::cuda::CUdevice_attribute attribute) {
  static constexpr std::pair<drivers::cuda::CUdevice_attribute, int> kRows[] = {
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 64 << 10},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
      {drivers::cuda::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
  };
  for (const auto& [known, answer] : kRows) {
    if (known == attribute) return answer;
  }
  return 0;
}

}  // namespace

const drivers::Target& H100() {
  static const auto& target = *new drivers::Target(drivers::cuda::MakeTarget(Answer));
  return target;
}

}  // namespace kiln::launches
