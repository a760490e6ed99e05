#include "kiln/state.h"

#include <string>

namespace kiln {

absl::Status State::Append(DType dtype, const Shape& shape, const absl::StatusOr<Tensor>& tensor) {
  if (!tensor.ok()) return tensor.status();
  types_.push_back({dtype, shape});
  tensors_.push_back(*tensor);
  return absl::OkStatus();
}

absl::Status State::AddZerosLike(const State& other) {
  const std::vector<Type> types = other.types_;  // `other` may be this
  for (const Type& type : types) {
    size_t bytes = SizeOf(type.dtype);
    for (const int64_t size : type.shape) bytes *= static_cast<size_t>(size);
    const std::string zeros(bytes, '\0');
    absl::Status added =
        Append(type.dtype, type.shape,
               client_->Upload(type.dtype, type.shape, absl::MakeConstSpan(zeros)));
    if (!added.ok()) return added;
  }
  return absl::OkStatus();
}

std::vector<Value> State::Inputs(GraphBuilder& builder, Location location) const {
  std::vector<Value> inputs;
  for (const Type& type : types_) inputs.push_back(builder.Input(type.dtype, type.shape, location));
  return inputs;
}

}  // namespace kiln
