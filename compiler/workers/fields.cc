#include "compiler/workers/fields.h"

#include <cstdint>

namespace kiln::workers {

void AppendField(std::string_view field, std::string* out) {
  const uint64_t size = field.size();
  out->append(reinterpret_cast<const char*>(&size), sizeof size);
  out->append(field);
}

bool TakeField(std::string_view* in, std::string* field) {
  uint64_t size = 0;
  if (in->size() < sizeof size) return false;
  std::memcpy(&size, in->data(), sizeof size);
  in->remove_prefix(sizeof size);
  if (in->size() < size) return false;
  field->assign(in->substr(0, size));
  in->remove_prefix(size);
  return true;
}

}  // namespace kiln::workers
