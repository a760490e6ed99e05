#include "tests/full_size/bound_buffers.h"

namespace kiln::full_size {
namespace {

bool IsLocal(const kernel::Buffer& buffer) { return buffer.memory == kernel::Memory::kLocal; }

int Add(ir::DType dtype, const kernel::Buffer& like, BoundBuffers* to) {
  to->buffers.push_back({dtype, like.elements, like.memory, like.access});
  return static_cast<int>(to->buffers.size()) - 1;
}

void AddRange(const kernel::Kernel& kernel, size_t begin, size_t end, BoundBuffers* to) {
  for (size_t i = begin; i < end; ++i) {
    to->value_of.push_back(Add(kernel.buffers[i].dtype, kernel.buffers[i], to));
  }
  for (size_t i = begin; i < end; ++i) {
    const kernel::Buffer& buffer = kernel.buffers[i];
    const bool has_bounds = IsLocal(buffer) || buffer.access == kernel::Access::kWrite;
    to->bound_of.push_back(has_bounds ? Add(ir::DType::kFloat64, buffer, to) : -1);
  }
}

}  // namespace

BoundBuffers AddBounds(const kernel::Kernel& kernel) {
  BoundBuffers result;
  while (result.globals < kernel.buffers.size() && !IsLocal(kernel.buffers[result.globals])) {
    ++result.globals;
  }
  AddRange(kernel, 0, result.globals, &result);
  AddRange(kernel, result.globals, kernel.buffers.size(), &result);
  return result;
}

}  // namespace kiln::full_size
