#include "server/runtime/program/bound_program.h"

#include <string>
#include <utility>

#include "proto/check/check.h"

namespace kiln::runtime {
namespace {

absl::StatusOr<std::unique_ptr<drivers::PreparedList>> CopyList(ManagedDevice& device,
                                                                int64_t bytes) {
  drivers::CommandList list;
  list.num_slots = 2;
  list.commands.emplace_back(drivers::CopyCommand{{0, 0, bytes}, {1, 0, bytes}});
  return device.device().Prepare(std::move(list));
}

absl::StatusOr<std::shared_ptr<buffers::Value>> Upload(ManagedDevice& device,
                                                       absl::Span<const int64_t> values) {
  auto type = std::make_shared<const buffers::TensorType>(
      buffers::TensorType{ir::DType::kInt64, {static_cast<int64_t>(values.size())}});
  // A separate account: these bytes are not charged to a session.
  auto made = device.pool()->Allocate(std::move(type), std::make_shared<buffers::Account>());
  if (!made.ok()) return made.status();
  const std::shared_ptr<buffers::Value> value = *std::move(made);
  const auto bytes = std::make_shared<const std::string>(
      reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  device.pool()->Fill(*value, {*bytes}, [&device, value, bytes](const absl::Status& filled) {
    value->Resolve(filled.ok() ? filled : device.AfterFailure(filled));
  });
  return value;
}

}  // namespace

std::shared_ptr<const BoundProgram> Bound(std::shared_ptr<Program> program) {
  KILN_CHECK_NE(program, nullptr);
  auto bound = std::make_shared<BoundProgram>();
  bound->signature = program->signature();
  bound->program = std::move(program);
  return bound;
}

absl::StatusOr<std::shared_ptr<const BoundProgram>> Bind(std::shared_ptr<Program> program,
                                                         Signature signature,
                                                         absl::Span<const int64_t> values) {
  KILN_CHECK_NE(program, nullptr);
  KILN_CHECK(!values.empty());
  auto bound = std::make_shared<BoundProgram>();
  auto uploaded = Upload(program->device(), values);
  if (!uploaded.ok()) return uploaded.status();
  bound->variables = *std::move(uploaded);
  bound->values.assign(values.begin(), values.end());
  bound->program = std::move(program);
  bound->signature = std::move(signature);
  bound->widen.resize(bound->signature.inputs.size());
  for (size_t i = 0; i < bound->widen.size(); ++i) {
    const int64_t bytes = bound->signature.inputs[i]->bytes();
    // A buffer of at least this size is used as it is, and an empty value needs no copy.
    if (bytes == 0 || bytes >= bound->input_bytes(i)) continue;
    auto list = CopyList(bound->program->device(), bytes);
    if (!list.ok()) return list.status();
    bound->widen[i] = *std::move(list);
  }
  return bound;
}

absl::StatusOr<std::shared_ptr<const BoundProgram>> Renewed(
    std::shared_ptr<const BoundProgram> bound) {
  if (bound->variables == nullptr || !bound->variables->lost()) return bound;
  absl::MutexLock lock(&bound->renewal.mutex);
  std::shared_ptr<const BoundProgram>& renewed = bound->renewal.bound;
  if (renewed != nullptr && !renewed->variables->lost()) return renewed;
  auto made = Bind(bound->program, bound->signature, bound->values);
  if (made.ok()) renewed = *made;
  return made;
}

void NoteUser(const std::shared_ptr<ProgramFuture>& future, const std::string& user,
              const std::string& name) {
  // Shortened: a client chose the name, and it is kept as long as the program.
  const auto note = [future, user, name = ShortName(name)] {
    if (future->result().ok()) (*future->result())->program->NoteUser(user, name);
  };
  if (!future->AddWaiter(note)) note();
}

}  // namespace kiln::runtime
