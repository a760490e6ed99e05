#include "compiler/schedule/apply/stage_buffers.h"

#include <utility>

#include "compiler/ir/str_cat.h"

namespace kiln::schedule {

int StageBuffers::Get(const std::string& purpose, int which, ir::DType dtype, int64_t elements,
                      Space space, int lanes) {
  const auto key = std::make_tuple(purpose, which, elements, space, lanes);
  const auto [found, inserted] = numbers_.emplace(key, static_cast<int>(program_.buffers.size()));
  if (!inserted) return found->second;
  LoopBuffer buffer;
  buffer.name = StrCat(purpose, program_.buffers.size());
  buffer.dtype = dtype;
  buffer.elements = elements;
  buffer.space = space;
  buffer.lanes = lanes;
  program_.buffers.push_back(std::move(buffer));
  return found->second;
}

}  // namespace kiln::schedule
