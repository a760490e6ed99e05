#include "server/sessions/program_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/sessions/device_shares.h"

namespace kiln::sessions {

using runtime::Admission;

namespace {

// The memory of a program's entry with this number of instances.
int64_t BytesOf(const DefinedProgram& program, size_t instances) {
  constexpr size_t kPerProgram = 1 << 10;
  constexpr size_t kPerInstance = 1 << 10;  // here and in the program cache
  size_t names = 0;
  for (const runtime::Variable& variable : program.variables) names += variable.name.size();
  size_t origin = program.origin ? program.origin->wire.capacity() : 0;
  if (program.origin)
    for (const std::string& device : program.origin->devices) origin += 64 + device.capacity();
  return static_cast<int64_t>(kPerProgram + origin + instances * (kPerInstance + 2 * names));
}

void ForgetLeastRecent(DefinedProgram* program) {
  KILN_CHECK(!program->instances.empty());
  program->instances.erase(
      std::min_element(program->instances.begin(), program->instances.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

}  // namespace

absl::Status ProgramTable::CheckNew(uint64_t program) const {
  if (program != 0 && !used_.Contains(program)) return absl::OkStatus();
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "program id ", program,
                                program == 0 ? " is not allowed; count from 1"
                                             : " has been used before; ids are never reused")),
                            "PROGRAM_REUSED", {{"program", absl::StrCat(program)}});
}

absl::StatusOr<std::shared_ptr<runtime::ProgramFuture>> ProgramTable::Define(
    const DefineProgram& operation, Admission admission) {
  if (absl::Status status = CheckNew(operation.program); !status.ok()) return status;
  auto origin = std::make_shared<ProgramOrigin>();
  origin->name = runtime::ShortName(operation.name);
  origin->devices = operation.devices;
  origin->settings = operation.settings;
  origin->live = operation.live;
  if (operation.graph.ok()) origin->wire = (*operation.graph)->Wire();
  auto program = Make(operation.graph, std::move(origin), admission);
  // Without memory the number remains unused: an entry for each refusal would need memory, too.
  if (!program.ok()) return program.status();
  const bool is_new = used_.Insert(operation.program);
  KILN_CHECK(is_new) << "program " << operation.program << " is defined twice";
  absl::Status status = program->source.status();
  if (status.ok()) {
    auto devices = Devices(operation.devices, admission);
    status = devices.status();
    if (devices.ok()) program->devices = *std::move(devices);
  }
  std::shared_ptr<runtime::ProgramFuture> future;
  if (status.ok()) {
    future = Begin(&*program, admission, operation.first_call);
  } else {
    program->source = status;
  }
  programs_.emplace(operation.program, *std::move(program));
  KILN_VALIDATE(*this, size());
  if (!status.ok()) return status;
  return future;
}

absl::StatusOr<std::vector<runtime::ManagedDevice*>> ProgramTable::Devices(
    const std::vector<std::string>& names, Admission admission) const {
  std::vector<runtime::ManagedDevice*> devices;
  if (names.empty()) devices.push_back(services_.device);
  for (const std::string& name : names) {
    auto device = FindDevice(services_.devices, name);
    if (!device.ok()) return device.status();
    devices.push_back(*device);
  }
  for (const runtime::ManagedDevice* device : devices) {
    if (absl::Status status = device->CheckUsable(admission == Admission::kAsked); !status.ok())
      return status;
  }
  return devices;
}

std::shared_ptr<runtime::ProgramFuture> ProgramTable::CompileAgain(
    const std::shared_ptr<const runtime::GraphSource>& source, const ProgramOrigin& origin,
    const runtime::Bindings& bindings) const {
  KILN_CHECK(source != nullptr);
  auto devices = Devices(origin.devices, Admission::kAgain);
  // The program then fails on this device, as it does when it is run.
  if (!devices.ok()) devices = std::vector<runtime::ManagedDevice*>{services_.device};
  return services_.programs->Get(source, bindings, *std::move(devices), origin.name, services_.host,
                                 Admission::kAgain, nullptr, origin.settings);
}

absl::StatusOr<DefinedProgram> ProgramTable::Make(
    absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source,
    std::shared_ptr<const ProgramOrigin> origin, Admission admission) const {
  DefinedProgram program;
  program.source = std::move(source);
  program.origin = std::move(origin);
  if (program.source.ok()) program.variables = (*program.source)->variables();
  program.charge = services_.host->Open(memory::Use::kPrograms);
  if (admission == Admission::kAgain) {
    if (services_.programs_of_user != nullptr)
      program.share = services_.programs_of_user->ForceReserve(1);
    program.charge.ForceResize(BytesOf(program, 1));
    return program;
  }
  if (services_.programs_of_user != nullptr) {
    auto share = services_.programs_of_user->Reserve(1);
    if (!share.ok()) return share.status();
    program.share = *std::move(share);
  }
  if (absl::Status status = program.charge.Resize(BytesOf(program, 1)); !status.ok()) return status;
  return program;
}

std::shared_ptr<runtime::ProgramFuture> ProgramTable::Begin(
    DefinedProgram* program, Admission admission,
    std::shared_ptr<runtime::FirstCall> first_call) const {
  KILN_CHECK(program->instances.empty() && !program->devices.empty());
  if (!program->variables.empty()) return nullptr;
  const runtime::SettingsChange settings = services_.programs->settings();
  auto future = Compile(*program, {}, admission, std::move(first_call));
  program->instances[{}] = {.future = future, .settings = settings};
  if (!program->origin->live) program->source = nullptr;
  return future;
}

void ProgramTable::Restore(uint64_t number,
                           absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> source,
                           std::shared_ptr<const ProgramOrigin> origin) {
  KILN_CHECK(used_.Contains(number)) << "program " << number << " was never defined";
  KILN_CHECK(origin != nullptr) << "program " << number;
  auto program = Make(std::move(source), std::move(origin), Admission::kAgain);
  if (program->source.ok()) {
    auto devices = Devices(program->origin->devices, Admission::kAgain);
    if (devices.ok()) {
      program->devices = *std::move(devices);
      Begin(&*program, Admission::kAgain);
    } else {
      program->source = devices.status();
    }
  }
  const bool is_new = programs_.emplace(number, *std::move(program)).second;
  KILN_CHECK(is_new) << "program " << number << " is restored twice";
  KILN_VALIDATE(*this, size());
}

void ProgramTable::RestoreUsed(IdSet used) {
  KILN_CHECK(programs_.empty() && used_.intervals() == 0);
  used_ = std::move(used);
}

std::shared_ptr<const ProgramOrigin> ProgramTable::OriginOf(uint64_t program) const {
  const auto found = programs_.find(program);
  if (found == programs_.end() || found->second.origin->wire.empty()) return nullptr;
  return found->second.origin;
}

std::shared_ptr<runtime::ProgramFuture> ProgramTable::Compile(
    const DefinedProgram& program, const runtime::Bindings& bindings, Admission admission,
    std::shared_ptr<runtime::FirstCall> first_call) const {
  KILN_CHECK(program.source.ok() && *program.source != nullptr);
  auto future = services_.programs->Get(*program.source, bindings, program.devices,
                                        program.origin->name, services_.host, admission,
                                        std::move(first_call), program.origin->settings);
  runtime::NoteUser(future, services_.user, program.origin->name);
  return future;
}

std::shared_ptr<runtime::ProgramFuture> ProgramTable::Instance(uint64_t sequence,
                                                               const RunProgram& run) {
  const auto found = programs_.find(run.program);
  if (found == programs_.end() || !found->second.source.ok()) return nullptr;
  DefinedProgram& program = found->second;
  const auto known = program.instances.find(run.bindings);
  if (known != program.instances.end()) {
    DefinedProgram::Instance& instance = known->second;
    instance.used = sequence;
    const bool failed = instance.future->resolved() && !instance.future->result().ok();
    // Without variables the definition has failed, which the client knows.
    if (!failed || program.variables.empty() || instance.compiled_for == sequence) {
      if (program.origin->live) Renew(program, run.bindings, &instance);
      return instance.future;
    }
  } else {
    if (!runtime::CheckBindings(program.variables, run.bindings).ok()) return nullptr;
    if (program.instances.size() >= services_.bindings_per_program ||
        !program.charge.Resize(BytesOf(program, program.instances.size() + 1)).ok()) {
      // There is at least one instance: the definition has reserved memory for the first.
      ForgetLeastRecent(&program);
    }
  }
  const runtime::SettingsChange settings = services_.programs->settings();
  auto future = Compile(program, run.bindings, Admission::kAsked, nullptr);
  program.instances[run.bindings] = {
      .future = future, .compiled_for = sequence, .used = sequence, .settings = settings};
  KILN_VALIDATE(*this, size());
  return future;
}

void ProgramTable::Renew(const DefinedProgram& program, const runtime::Bindings& bindings,
                         DefinedProgram::Instance* instance) const {
  const runtime::SettingsChange settings = services_.programs->settings();
  if (instance->settings != settings && instance->renewed == nullptr) {
    instance->settings = settings;
    instance->renewed = Compile(program, bindings, Admission::kAsked, nullptr);
  }
  if (instance->renewed == nullptr || !instance->renewed->resolved()) return;
  const auto renewed = std::exchange(instance->renewed, nullptr);
  // Otherwise the kernels that it has stay.
  if (renewed->result().ok()) instance->future = renewed;
}

std::shared_ptr<runtime::ProgramFuture> ProgramTable::MustWaitFor(uint64_t sequence,
                                                                  const RunProgram& run) {
  auto future = Instance(sequence, run);
  return future && !future->resolved() ? future : nullptr;
}

absl::StatusOr<std::shared_ptr<const runtime::BoundProgram>> ProgramTable::Find(
    uint64_t sequence, const RunProgram& run) {
  const auto defined = programs_.find(run.program);
  if (defined == programs_.end()) return Unknown(run.program);
  const DefinedProgram& program = defined->second;
  if (!program.source.ok()) return program.source.status();
  absl::Status bound = runtime::CheckBindings(program.variables, run.bindings);
  if (!bound.ok()) return bound;
  const auto instance = Instance(sequence, run);
  KILN_CHECK(instance != nullptr && instance->resolved()) << "program " << run.program;
  return instance->result();
}

absl::Status ProgramTable::Release(uint64_t program) {
  if (programs_.erase(program) == 0) return Unknown(program);
  KILN_VALIDATE(*this, size());
  return absl::OkStatus();
}

absl::Status ProgramTable::Unknown(uint64_t program) const {
  const char* what = used_.Contains(program) ? " has been released" : " is unknown in this session";
  return errors::WithReason(absl::NotFoundError(absl::StrCat("program ", program, what)),
                            "UNKNOWN_PROGRAM", {{"program", absl::StrCat(program)}});
}

std::vector<ProgramTable::Waiting> ProgramTable::FirstCalls() const {
  std::vector<Waiting> waiting;
  for (const auto& [number, defined] : programs_) {
    for (const auto& [bindings, instance] : defined.instances) {
      const std::shared_ptr<runtime::FirstCall>& call = instance.future->first_call;
      if (call == nullptr || call->has_ended()) continue;
      runtime::FirstCall::Progress progress = call->progress();
      if (progress.part != runtime::kWaitForRun)
        waiting.push_back({defined.origin->name, std::move(progress)});
    }
  }
  return waiting;
}

bool ProgramTable::Names(const runtime::Program& program) const {
  for (const auto& [number, defined] : programs_) {
    for (const auto& [bindings, instance] : defined.instances) {
      const runtime::ProgramFuture& future = *instance.future;
      if (future.resolved() && future.result().ok() &&
          (*future.result())->program.get() == &program)
        return true;
    }
  }
  return false;
}

std::map<uint64_t, DefinedProgram> ProgramTable::TakeAll() { return std::exchange(programs_, {}); }

void ProgramTable::Validate() const {
  for (const auto& [number, program] : programs_) {
    KILN_CHECK(used_.Contains(number)) << "program " << number << " was never defined";
    KILN_CHECK(program.origin != nullptr) << "program " << number;
    const size_t instances = program.instances.size();
    KILN_CHECK_LE(instances, std::max<size_t>(1, services_.bindings_per_program));
    KILN_CHECK_GE(program.charge.bytes(), BytesOf(program, std::max<size_t>(1, instances)))
        << "program " << number;
    if (!program.source.ok()) {
      KILN_CHECK_EQ(instances, 0) << "program " << number << " has failed";
      continue;
    }
    KILN_CHECK(!program.devices.empty()) << "program " << number;
    // A graph is kept as long as a run may need it with other bindings.
    KILN_CHECK_EQ(*program.source == nullptr, program.variables.empty() && !program.origin->live)
        << "program " << number;
    if (program.variables.empty()) KILN_CHECK_EQ(instances, 1) << "program " << number;
  }
}

}  // namespace kiln::sessions
