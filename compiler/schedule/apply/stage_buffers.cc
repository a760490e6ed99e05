#include "compiler/schedule/apply/stage_buffers.h"

#include <utility>

#include "compiler/ir/str_cat.h"
#include "proto/check/check.h"

namespace kiln::schedule {

int StageBuffers::Get(const std::string& purpose, int which, ir::DType dtype, int64_t elements,
                      Space space, int lanes) {
  const auto key = std::make_tuple(purpose, which, elements, space, lanes);
  const auto [found, inserted] = numbers_.emplace(key, static_cast<int>(program_.buffers.size()));
  if (!inserted) {
    const LoopBuffer& known = program_.buffers[found->second];
    KILN_CHECK_EQ(known.dtype, dtype) << known.name;
    KILN_CHECK(known.elements == elements && known.space == space && known.lanes == lanes)
        << known.name;
    return found->second;
  }
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
