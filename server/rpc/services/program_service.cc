#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kiln/v1/program.grpc.pb.h"
#include "server/errors/errors.h"
#include "server/rpc/messages/graph_source.h"
#include "server/rpc/messages/status.h"
#include "server/rpc/services/answers.h"
#include "server/rpc/services/bounded_method.h"
#include "server/rpc/services/services.h"
#include "server/rpc/services/tune_call.h"
#include "server/runtime/cache/fair_pool.h"
#include "server/runtime/program/explain.h"

namespace kiln::rpc {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// The caller's use of a program, or all of it if they may see everything: other users' names and
// runs reveal what they work on.
runtime::Program::Use UseOf(const runtime::Program& program, const auth::Principal& caller) {
  auto use = program.UseBy(caller.user);
  if (!caller.sees_all()) return use.value_or(runtime::Program::Use());
  return {.name = use ? use->name : program.description().name,
          .since = program.description().compiled,
          .runs = program.runs(),
          .device_seconds = program.device_seconds()};
}

void Fill(const ProgramServiceParts& parts, const auth::Principal& caller,
          const std::shared_ptr<runtime::Program>& program, v1::Program* proto) {
  const runtime::Program::Description& description = program->description();
  const compiler::CompiledProgram& compiled = program->compiled();
  proto->set_digest(description.digest);
  const runtime::Program::Use use = UseOf(*program, caller);
  proto->set_name(use.name);
  proto->set_device(program->device().name());
  for (const std::string& name : program->device_names()) proto->add_devices(name);
  *proto->mutable_compiled() = ToProto(use.since);
  proto->set_kernels(static_cast<uint32_t>(compiled.calls.size()));
  proto->set_distinct_kernels(static_cast<uint32_t>(compiled.kernels.size()));
  proto->set_runs(static_cast<uint64_t>(use.runs));
  proto->set_device_seconds(use.device_seconds);
  if (caller.sees_all()) {
    proto->set_compile_seconds(description.compile_seconds);
    proto->set_kernels_from_cache(static_cast<uint32_t>(runtime::KernelsFromCache(compiled)));
  }
  proto->set_arena_bytes(static_cast<uint64_t>(program->arena_bytes()));
  proto->set_arena_bytes_without_reuse(static_cast<uint64_t>(compiled.arena_bytes_without_reuse));
  uint32_t sessions = 0;
  for (const auto& session : VisibleSessions(parts, caller))
    sessions += session->Uses(*program) ? 1 : 0;
  proto->set_sessions(sessions);
}

// Sets what the search has measured, if the kernel's setting is still the stored one and is used.
void FillTimes(tuner::SettingStore& settings, const runtime::Program& program, size_t i,
               v1::Kernel* proto) {
  const compiler::CompiledKernel& kernel = program.compiled().kernels[i];
  if (kernel.setting.empty() || !kernel.setting_refusal.empty()) return;
  const auto stored =
      settings.Find(kernel.ir, program.device_of_kernel(i).info().target.HardwareKey(),
                    program.description().owner);
  if (!stored || stored->setting != kernel.setting) return;
  proto->set_seconds_heuristic(stored->seconds_before);
  proto->set_seconds_tuned(stored->seconds_after);
}

// Sets the roofline, if one is known that the measured time does not beat.
void FillRoofline(const tuner::Roofline& roofline, v1::Kernel* proto) {
  if (roofline.seconds <= 0 || tuner::IsBeaten(roofline, proto->seconds_median())) return;
  proto->set_roofline_seconds(roofline.seconds);
  proto->set_roofline_limit(std::string(tuner::LimitName(roofline.limit)));
}

void AddFirstCalls(const sessions::Session& session, v1::ListFirstCallsResponse* response) {
  for (const sessions::ProgramTable::Waiting& waiting : session.FirstCalls()) {
    v1::FirstCall* proto = response->add_first_calls();
    proto->set_name(waiting.name);
    proto->set_session(session.identity().name);
    proto->set_part(waiting.progress.part);
    proto->set_seconds(absl::ToDoubleSeconds(waiting.progress.time));
    proto->set_kernels(static_cast<uint32_t>(waiting.progress.kernels));
    proto->set_kernels_made(static_cast<uint32_t>(waiting.progress.kernels_made));
  }
}

absl::Status Explain(const ProgramServiceParts& parts, const auth::Principal& caller,
                     const v1::ExplainProgramRequest& request,
                     v1::ExplainProgramResponse* response) {
  const auto program = runtime::FindByPrefix(VisiblePrograms(parts, caller), request.digest());
  if (!program.ok()) return program.status();
  ExplainWithoutKernels(parts, caller, *program, response);
  const KernelTexts texts = {.source = true, .assembly = request.with_assembly()};
  for (const ListedKernel& kernel : KernelsOf(*program, caller)) {
    absl::Status status = ExplainKernel(parts, caller, kernel, texts, response->add_kernels());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void FillTuning(uint64_t id, const tuner::TuningInfo& info,
                const std::vector<std::shared_ptr<runtime::Program>>& programs,
                const auth::Principal& caller, v1::Tuning* proto) {
  proto->set_id(id);
  proto->set_program(info.program);
  proto->set_user(info.user);
  const auto program = runtime::FindByPrefix(programs, info.program);
  if (program.ok()) proto->set_name(UseOf(**program, caller).name);
}

absl::Status NoTuning() {
  return errors::WithReason(
      absl::UnimplementedError("this daemon does not search for schedules; programs run with the "
                               "schedules that the compiler chooses"),
      "NO_TUNING");
}

class ProgramService final : public v1::ProgramService::CallbackService {
 public:
  explicit ProgramService(const ProgramServiceParts& parts) : parts_(parts) {
    const auto bound = [this](const char* name, auto method) {
      MarkMethodCallback(MethodIndex(v1::ProgramService::service_full_name(), name),
                         Bounded(parts_, this, method));
    };
    bound("ListPrograms", &ProgramService::ListPrograms);
    bound("CompileProgram", &ProgramService::CompileProgram);
    bound("ExplainProgram", &ProgramService::ExplainProgram);
    bound("ListKernels", &ProgramService::ListKernels);
    bound("ListFirstCalls", &ProgramService::ListFirstCalls);
    bound("TuneProgram", &ProgramService::TuneProgram);
    bound("ListTunings", &ProgramService::ListTunings);
    bound("StopTuning", &ProgramService::StopTuning);
  }

  ServerUnaryReactor* ListPrograms(CallbackServerContext* context,
                                   const v1::ListProgramsRequest* request,
                                   v1::ListProgramsResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    rpc::ListPrograms(parts_, *caller, response);
    return ReplyCharged(parts_, context, *caller, absl::OkStatus(), response);
  }

  ServerUnaryReactor* CompileProgram(CallbackServerContext* context,
                                     const v1::CompileProgramRequest* request,
                                     v1::CompileProgramResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    auto session = FindSession(parts_, caller, request->session_id());
    if (!session.ok()) return Reply(parts_, context, session.status());
    const std::shared_ptr<memory::Account>& host = (*session)->host();
    const sessions::User& user = (*session)->user();
    // The request lives until it is answered, in addition to the copy that is compiled.
    auto charge = host->Reserve(memory::Use::kGraphs, BytesHeld(request->graph()));
    if (!charge.ok()) return Reply(parts_, context, user.Explain(charge.status()));
    auto source = MakeGraphSource(request->graph(), *host);
    if (source.ok())
      if (absl::Status fits = user.graph_nodes.Check((*source)->nodes()); !fits.ok()) source = fits;
    if (!source.ok()) return Reply(parts_, context, user.Explain(source.status()));
    const runtime::Bindings bindings(request->bindings().begin(), request->bindings().end());
    absl::Status status = runtime::CheckBindings((*source)->variables(), bindings);
    if (status.ok()) status = (*session)->device().CheckUsable(true);
    if (!status.ok()) return Reply(parts_, context, status);
    auto future =
        parts_.programs->Get(*source, bindings, (*session)->device(), request->name(), host);
    // Before the response is built from it.
    runtime::NoteUser(future, caller->user, request->name());
    ServerUnaryReactor* reactor = context->DefaultReactor();
    // Shared, because std::function copies its captures, and a charge can only be moved.
    const auto kept = std::make_shared<memory::Charge>(*std::move(charge));
    const auto ended = [this, caller = *caller, reactor, future, response, kept] {
      if (future->result().ok())
        Fill(parts_, caller, (*future->result())->program, response->mutable_program());
      reactor->Finish(End(parts_, future->result().status()));
    };
    // The call does not occupy a thread while the program compiles.
    if (!future->AddWaiter(ended)) ended();
    return reactor;
  }

  ServerUnaryReactor* ExplainProgram(CallbackServerContext* context,
                                     const v1::ExplainProgramRequest* request,
                                     v1::ExplainProgramResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const std::shared_ptr<sessions::User> user = parts_.registry->GetUser(caller->user);
    memory::Charge charge = user->host->Open(memory::Use::kTransfers);
    // The request waits in the queue, too: as received, and parsed.
    const auto bytes = static_cast<int64_t>(request->ByteSizeLong());
    if (bytes > kSmallAnswer)
      if (absl::Status status = charge.Resize(2 * bytes); !status.ok())
        return Reply(parts_, context, user->Explain(status));
    auto* const reactor = new ChargedReactor(parts_, std::move(charge));
    const bool is_queued = parts_.explanations->TrySchedule(
        user->host->user(), kExplanationsWaitingMax, [=, this, caller = *caller] {
          const absl::Status explained = reactor->is_unwanted()
                                             ? absl::CancelledError("the client disconnected")
                                             : Explain(parts_, caller, *request, response);
          reactor->Answer(parts_, *user, explained, response);
        });
    if (!is_queued) reactor->Answer(parts_, *user, TooManyExplanations(), response);
    return reactor;
  }

  ServerUnaryReactor* ListKernels(CallbackServerContext* context,
                                  const v1::ListKernelsRequest* request,
                                  v1::ListKernelsResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    const auto kernels = rpc::ListKernels(parts_, *caller, request->program_digest());
    if (!kernels.ok()) return Reply(parts_, context, kernels.status());
    for (const ListedKernel& kernel : *kernels)
      FillKernel(kernel, caller->sees_all(), response->add_kernels());
    return ReplyCharged(parts_, context, *caller, absl::OkStatus(), response);
  }

  ServerUnaryReactor* ListFirstCalls(CallbackServerContext* context,
                                     const v1::ListFirstCallsRequest* request,
                                     v1::ListFirstCallsResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    if (request->session_id().empty()) {
      rpc::ListFirstCalls(parts_, *caller, response);
    } else {
      auto session = FindSession(parts_, caller, request->session_id());
      if (!session.ok()) return Reply(parts_, context, session.status());
      AddFirstCalls(**session, response);
    }
    return ReplyCharged(parts_, context, *caller, absl::OkStatus(), response);
  }

  grpc::ServerWriteReactor<v1::TuneProgramResponse>* TuneProgram(
      CallbackServerContext* context, const v1::TuneProgramRequest* request) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Refused(caller.status());
    if (parts_.program_tuner == nullptr) return Refused(NoTuning());
    const auto program = runtime::FindByPrefix(VisiblePrograms(parts_, *caller), request->digest());
    if (!program.ok()) return Refused(program.status());
    return BeginTuning(parts_, *context, *caller, *program, *request);
  }

  ServerUnaryReactor* ListTunings(CallbackServerContext* context,
                                  const v1::ListTuningsRequest* request,
                                  v1::ListTuningsResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    if (parts_.program_tuner == nullptr) return Reply(parts_, context, absl::OkStatus());
    const auto programs = VisiblePrograms(parts_, *caller);
    for (const tuner::ListedTuning& listed : parts_.program_tuner->List()) {
      if (!caller->sees_all() && listed.info.user != caller->user) continue;
      v1::Tuning* proto = response->add_tunings();
      FillTuning(listed.id, listed.info, programs, *caller, proto);
      for (const std::string& device : listed.devices) proto->add_devices(device);
      *proto->mutable_since() = ToProto(listed.since);
      proto->set_paused(listed.info.control->is_paused());
      if (listed.progress.number > 0) FillProgress(listed.progress, proto->mutable_progress());
    }
    return ReplyCharged(parts_, context, *caller, absl::OkStatus(), response);
  }

  ServerUnaryReactor* StopTuning(CallbackServerContext* context,
                                 const v1::StopTuningRequest* request,
                                 v1::StopTuningResponse* response) override {
    const auto caller = parts_.access->Caller(*context);
    if (!caller.ok()) return Reply(parts_, context, caller.status());
    if (parts_.program_tuner == nullptr) return Reply(parts_, context, NoTuning());
    const bool is_admin = caller->role == auth::Role::kAdmin;
    const auto stopped = parts_.program_tuner->Cancel(
        request->id(), is_admin ? "" : caller->user,
        absl::StrCat("the user ", caller->user, " has stopped the tuning"));
    std::string subject = absl::StrCat(request->id());
    if (stopped.ok()) {
      FillTuning(request->id(), *stopped, VisiblePrograms(parts_, *caller), *caller,
                 response->mutable_tuning());
      absl::StrAppend(&subject, ", ", stopped->program, " of ",
                      stopped->user.empty() ? "the daemon" : stopped->user);
    }
    Audit(*parts_.audit, parts_.clock, *caller, "stop_tuning", subject, stopped.status());
    return Reply(parts_, context, stopped.status());
  }

 private:
  grpc::ServerWriteReactor<v1::TuneProgramResponse>* Refused(const absl::Status& why) {
    return new Refusal<v1::TuneProgramResponse>(End(parts_, why));
  }

  const ProgramServiceParts& parts_;
};

}  // namespace

void ListPrograms(const ProgramServiceParts& parts, const auth::Principal& caller,
                  v1::ListProgramsResponse* response) {
  for (const auto& program : VisiblePrograms(parts, caller))
    Fill(parts, caller, program, response->add_programs());
}

void ListFirstCalls(const ProgramServiceParts& parts, const auth::Principal& caller,
                    v1::ListFirstCallsResponse* response) {
  for (const auto& session : VisibleSessions(parts, caller)) AddFirstCalls(*session, response);
}

std::vector<std::shared_ptr<runtime::Program>> VisiblePrograms(const ProgramServiceParts& parts,
                                                               const auth::Principal& caller) {
  auto programs = parts.programs->List();
  std::erase_if(programs, [&](const auto& program) {
    return caller.sees_all() ? !program->has_users() : !program->UseBy(caller.user);
  });
  return programs;
}

std::vector<ListedKernel> KernelsOf(const std::shared_ptr<runtime::Program>& program,
                                    const auth::Principal& caller) {
  const std::vector<runtime::KernelTimes> times = program->kernel_times();
  const int64_t runs = UseOf(*program, caller).runs;
  std::vector<ListedKernel> kernels;
  for (size_t i = 0; i < times.size(); ++i) kernels.push_back({program, i, times[i], runs});
  return kernels;
}

absl::StatusOr<std::vector<ListedKernel>> ListKernels(const ProgramServiceParts& parts,
                                                      const auth::Principal& caller,
                                                      const std::string& digest) {
  auto programs = VisiblePrograms(parts, caller);
  if (!digest.empty()) {
    auto program = runtime::FindByPrefix(programs, digest);
    if (!program.ok()) return program.status();
    programs = {*std::move(program)};
  }
  std::vector<ListedKernel> kernels;
  for (const auto& program : programs) {
    for (ListedKernel& kernel : KernelsOf(program, caller)) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// Values that depend on other users are only shown to callers who see everything: how often others'
// runs were timed, how long they took, and whether another user had already compiled the kernel.
void FillKernel(const ListedKernel& listed, bool sees_all, v1::Kernel* proto) {
  const compiler::CompiledKernel& kernel = listed.compiled();
  const runtime::KernelTimes& times = listed.times;
  proto->set_name(kernel.image.name);
  proto->set_digest(kernel.digest);
  proto->set_flops(static_cast<uint64_t>(kernel.image.flops));
  proto->set_bytes(static_cast<uint64_t>(kernel.image.bytes));
  proto->set_samples(static_cast<uint64_t>(std::min(times.samples, listed.runs)));
  if (times.samples > 0 && listed.runs > 0) {
    proto->set_seconds_median(times.median_seconds);
    proto->set_seconds_min(times.lowest_seconds);
    proto->set_cold(times.is_cold);
  }
  proto->set_launches(static_cast<uint32_t>(times.launches));
  if (!sees_all) return;
  proto->set_from_cache(kernel.from_cache);
  proto->set_compile_seconds(kernel.compile_seconds);
}

std::vector<tuner::Roofline> RooflinesOf(const ProgramServiceParts& parts,
                                         absl::Span<const ListedKernel> kernels) {
  std::map<const runtime::ManagedDevice*, std::string> hardware;
  std::vector<tuner::Rooflines::Kernel> wanted;
  for (const ListedKernel& kernel : kernels) {
    const runtime::ManagedDevice& device = kernel.program->device_of_kernel(kernel.number);
    const auto [known, is_new] = hardware.try_emplace(&device);
    if (is_new) known->second = device.info().target.HardwareKey();
    wanted.push_back({kernel.compiled().digest, &kernel.compiled().ir, known->second});
  }
  return parts.rooflines->Of(wanted);
}

void FillListedKernel(const ListedKernel& kernel, const tuner::Roofline& roofline, bool sees_all,
                      v1::Kernel* proto) {
  FillKernel(kernel, sees_all, proto);
  FillRoofline(roofline, proto);
}

void ExplainWithoutKernels(const ProgramServiceParts& parts, const auth::Principal& caller,
                           const std::shared_ptr<runtime::Program>& program,
                           v1::ExplainProgramResponse* response) {
  const compiler::CompiledProgram& compiled = program->compiled();
  Fill(parts, caller, program, response->mutable_program());
  response->set_graph(compiled.graph_text);
  response->set_partition(compiled.partition_text);
  response->set_queue(runtime::QueueText(*program));
  for (const compiler::PassReport& pass : compiled.passes) {
    v1::PassReport* proto = response->add_passes();
    proto->set_pass(pass.pass);
    if (caller.sees_all()) proto->set_seconds(pass.seconds);
    proto->set_disabled(pass.disabled);
    proto->set_text(pass.text);
  }
  const std::shared_ptr<runtime::FirstCall>& first_call = program->first_call();
  if (!caller.sees_all() || !first_call || !first_call->has_ended()) return;
  for (const runtime::FirstCall::Part& part : first_call->parts()) {
    v1::FirstCallPart* proto = response->add_first_call();
    proto->set_name(part.name);
    proto->set_seconds(absl::ToDoubleSeconds(part.time));
    proto->set_page_faults(static_cast<uint64_t>(part.page_faults));
  }
}

absl::Status ExplainKernel(const ProgramServiceParts& parts, const auth::Principal& caller,
                           const ListedKernel& listed, KernelTexts texts, v1::Kernel* proto) {
  const compiler::CompiledKernel& kernel = listed.compiled();
  const runtime::ManagedDevice& device = listed.program->device_of_kernel(listed.number);
  FillKernel(listed, caller.sees_all(), proto);
  proto->set_ir(kernel.ir);
  proto->set_schedule(kernel.schedule);
  proto->set_refused_schedule(kernel.refused_schedule);
  proto->set_refusal(kernel.refusal);
  proto->set_setting(kernel.setting);
  proto->set_setting_refusal(kernel.setting_refusal);
  proto->set_setting_ignored(kernel.setting_ignored);
  FillTimes(*parts.settings, *listed.program, listed.number, proto);
  FillRoofline(RooflinesOf(parts, {&listed, 1}).front(), proto);
  // Generated on request only, since it is rarely needed.
  if (texts.source && kernel.source) {
    auto source = kernel.source();
    if (!source.ok()) return source.status();
    proto->set_source(*std::move(source));
  }
  if (!texts.assembly) return absl::OkStatus();
  auto assembly = kernel.assembly.empty() ? parts.disassemble(kernel.image, device.info().target)
                                          : absl::StatusOr<std::string>(kernel.assembly);
  if (!assembly.ok()) return assembly.status();
  proto->set_assembly(*std::move(assembly));
  return absl::OkStatus();
}

absl::Status TooManyExplanations() {
  return errors::WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                kExplanationsWaitingMax,
                                " explanations that you requested are waiting, which is the limit "
                                "of a user; try again when some are answered")),
                            "TOO_MANY_EXPLANATIONS",
                            {{"limit", absl::StrCat(kExplanationsWaitingMax)}});
}

std::unique_ptr<grpc::Service> MakeProgramService(const ProgramServiceParts& parts) {
  return std::make_unique<ProgramService>(parts);
}

}  // namespace kiln::rpc
