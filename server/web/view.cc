#include "server/web/view.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/auth/method_table.h"
#include "server/rpc/messages/status.h"
#include "server/rpc/services/answers.h"
#include "server/runtime/program/launch_graph.h"
#include "server/web/json.h"
#include "server/web/pages.pb.h"
#include "server/web/query.h"
#include "server/web/rows.h"

namespace kiln::web {
namespace {

constexpr char kExplain[] = "/kiln.v1.ProgramService/ExplainProgram";

bool MayExplain(const auth::Principal& caller) {
  const auto role_min = auth::LeastRole(kExplain);
  return role_min && caller.role >= *role_min;
}

absl::StatusOr<std::string> OverviewPage(const ViewParts& parts, const auth::Principal& caller,
                                         const std::string& text) {
  if (const auto query = Query::Parse(text, {}); !query.ok()) return query.status();
  Overview page;
  page.set_version(parts.admin->version);
  *page.mutable_started() = rpc::ToProto(parts.admin->started);
  page.set_user(caller.user);
  page.set_role(std::string(auth::Name(caller.role)));
  page.set_sees_all(caller.sees_all());
  page.set_explains(MayExplain(caller));
  page.set_seconds(absl::ToDoubleSeconds(parts.admin->clock.steady() - absl::UnixEpoch()));
  v1::ListDevicesResponse devices;
  rpc::ListDevices(*parts.devices, &devices);
  page.mutable_devices()->Swap(devices.mutable_devices());
  v1::ListUsersResponse users;
  rpc::ListUsers(*parts.admin, caller, &users);
  page.mutable_users()->Swap(users.mutable_users());
  v1::ListFirstCallsResponse first_calls;
  rpc::ListFirstCalls(*parts.programs, caller, &first_calls);
  page.mutable_first_calls()->Swap(first_calls.mutable_first_calls());
  return ToJson(page);
}

double SecondsPerRunOf(const v1::Program& program) {
  return program.runs() > 0 ? program.device_seconds() / static_cast<double>(program.runs()) : 0;
}

using Programs = Column<v1::Program>;
const Programs kProgramColumns[] = {
    {.name = "name", .text = [](const v1::Program& p) -> const std::string& { return p.name(); }},
    {.name = "digest",
     .text = [](const v1::Program& p) -> const std::string& { return p.digest(); }},
    {.name = "device",
     .text = [](const v1::Program& p) -> const std::string& { return p.device(); }},
    {.name = "kernels", .number = [](const v1::Program& p) -> double { return p.kernels(); }},
    {.name = "distinct",
     .number = [](const v1::Program& p) -> double { return p.distinct_kernels(); }},
    {.name = "cached",
     .number = [](const v1::Program& p) -> double { return p.kernels_from_cache(); }},
    {.name = "compile", .number = [](const v1::Program& p) { return p.compile_seconds(); }},
    {.name = "runs", .number = [](const v1::Program& p) { return static_cast<double>(p.runs()); }},
    {.name = "run", .number = [](const v1::Program& p) { return SecondsPerRunOf(p); }},
    {.name = "total", .number = [](const v1::Program& p) { return p.device_seconds(); }},
    {.name = "arena",
     .number = [](const v1::Program& p) { return static_cast<double>(p.arena_bytes()); }},
    {.name = "sessions", .number = [](const v1::Program& p) -> double { return p.sessions(); }},
};

absl::StatusOr<std::string> ProgramList(const ViewParts& parts, const auth::Principal& caller,
                                        const std::string& text) {
  const auto query = Query::Parse(text, {"sort", "order", "offset", "limit"});
  if (!query.ok()) return query.status();
  v1::ListProgramsResponse listed;
  rpc::ListPrograms(*parts.programs, caller, &listed);
  std::vector<v1::Program> programs(std::make_move_iterator(listed.mutable_programs()->begin()),
                                    std::make_move_iterator(listed.mutable_programs()->end()));
  ProgramsPage page;
  page.set_total(programs.size());
  if (absl::Status status = KeepPart<v1::Program>(*query, kProgramColumns, &programs); !status.ok())
    return status;
  for (v1::Program& program : programs) *page.add_programs() = std::move(program);
  return ToJson(page);
}

// A kernel as it is listed, and as the caller sees it: rows are sorted by what the caller sees, or
// their order would show more.
struct KernelLine {
  rpc::ListedKernel listed;
  std::string program_name;
  std::string kind;  // KernelRow.schedule_kind
  v1::Kernel seen;
};

double SecondsPerRun(const KernelLine& line) {
  return line.seen.seconds_median() * line.seen.launches();
}

double Rate(uint64_t amount, const KernelLine& line) {
  const double seconds = line.seen.seconds_median();
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

// How much of the device's limit the kernel reaches; 0 if that is not known.
double RooflineShare(const KernelLine& line) {
  const double seconds = line.seen.seconds_median();
  return seconds > 0 ? line.seen.roofline_seconds() / seconds : 0;
}

using Kernels = Column<KernelLine>;
const Kernels kKernelColumns[] = {
    {.name = "number", .number = [](const KernelLine& k) -> double { return k.listed.number; }},
    {.name = "name",
     .text = [](const KernelLine& k) -> const std::string& { return k.seen.name(); }},
    {.name = "program",
     .text = [](const KernelLine& k) -> const std::string& { return k.program_name; }},
    {.name = "launches", .number = [](const KernelLine& k) -> double { return k.seen.launches(); }},
    {.name = "median", .number = [](const KernelLine& k) { return k.seen.seconds_median(); }},
    {.name = "best", .number = [](const KernelLine& k) { return k.seen.seconds_min(); }},
    {.name = "run", .number = [](const KernelLine& k) { return SecondsPerRun(k); }},
    {.name = "compute", .number = [](const KernelLine& k) { return Rate(k.seen.flops(), k); }},
    {.name = "memory", .number = [](const KernelLine& k) { return Rate(k.seen.bytes(), k); }},
    {.name = "roofline", .number = [](const KernelLine& k) { return RooflineShare(k); }},
    {.name = "limit",
     .text = [](const KernelLine& k) -> const std::string& { return k.seen.roofline_limit(); }},
    {.name = "samples",
     .number = [](const KernelLine& k) { return static_cast<double>(k.seen.samples()); }},
    {.name = "schedule", .text = [](const KernelLine& k) -> const std::string& { return k.kind; }},
    {.name = "compile", .number = [](const KernelLine& k) { return k.seen.compile_seconds(); }},
};

const char* ScheduleKind(const compiler::CompiledKernel& kernel) {
  if (!kernel.refusal.empty()) return "plain";
  return kernel.setting.empty() || !kernel.setting_refusal.empty() ? "heuristic" : "tuned";
}

std::string NameOf(const runtime::Program& program, const auth::Principal& caller) {
  if (const auto use = program.UseBy(caller.user)) return use->name;
  return caller.sees_all() ? program.description().name : "";
}

std::vector<KernelLine> LinesOf(const ViewParts& parts, const auth::Principal& caller,
                                std::vector<rpc::ListedKernel> kernels) {
  const auto rooflines = rpc::RooflinesOf(*parts.programs, kernels);
  std::vector<KernelLine> lines(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    KernelLine& line = lines[i];
    rpc::FillListedKernel(kernels[i], rooflines[i], caller.sees_all(), &line.seen);
    const bool is_same = i > 0 && kernels[i].program == lines[i - 1].listed.program;
    line.program_name = is_same ? lines[i - 1].program_name : NameOf(*kernels[i].program, caller);
    line.kind = ScheduleKind(kernels[i].compiled());
    line.listed = std::move(kernels[i]);
  }
  return lines;
}

void Fill(KernelLine line, const auth::Principal& caller, KernelRow* row) {
  const runtime::Program& program = *line.listed.program;
  row->set_program(program.description().digest);
  row->set_program_name(std::move(line.program_name));
  row->set_device(program.device_of_kernel(line.listed.number).name());
  row->set_number(static_cast<uint32_t>(line.listed.number + 1));
  row->set_schedule_kind(std::move(line.kind));
  *row->mutable_kernel() = std::move(line.seen);
  if (MayExplain(caller)) row->mutable_kernel()->set_schedule(line.listed.compiled().schedule);
}

absl::StatusOr<std::string> KernelList(const ViewParts& parts, const auth::Principal& caller,
                                       const std::string& text) {
  const auto query = Query::Parse(text, {"program", "find", "sort", "order", "offset", "limit"});
  if (!query.ok()) return query.status();
  auto kernels = rpc::ListKernels(*parts.programs, caller, query->Text("program"));
  if (!kernels.ok()) return kernels.status();
  std::vector<KernelLine> lines = LinesOf(parts, caller, *std::move(kernels));
  const std::string find = query->Text("find");
  std::erase_if(lines, [&](const KernelLine& line) {
    return !absl::StrContains(line.seen.name(), find) &&
           !absl::StrContains(line.program_name, find);
  });
  KernelsPage page;
  page.set_total(lines.size());
  double seconds = 0;
  for (const KernelLine& line : lines) seconds += SecondsPerRun(line);
  page.set_seconds_per_run(seconds);
  if (absl::Status status = KeepPart<KernelLine>(*query, kKernelColumns, &lines); !status.ok())
    return status;
  for (KernelLine& line : lines) Fill(std::move(line), caller, page.add_rows());
  return ToJson(page);
}

absl::Status TooLarge(const std::string& what) {
  return absl::ResourceExhaustedError(absl::StrCat(
      what, " is too large to be shown here; `kiln explain PROGRAM > FILE` writes all of it"));
}

absl::StatusOr<std::shared_ptr<runtime::Program>> FindProgram(const ViewParts& parts,
                                                              const auth::Principal& caller,
                                                              const Query& query) {
  return runtime::FindByPrefix(rpc::VisiblePrograms(*parts.programs, caller),
                               query.Text("program"));
}

// Adds the launches and edges of one compiled program, whose kernels begin at `first_kernel`.
void AddLaunches(const compiler::CompiledProgram& program, const std::string& device,
                 size_t first_kernel, absl::Span<const KernelLine> kernels, ProgramPage* page) {
  const auto first_launch = static_cast<size_t>(page->launches_size());
  const size_t shown = std::min(program.calls.size(), kLaunchesMax - first_launch);
  page->set_launches_left_out(page->launches_left_out() + program.calls.size() - shown);
  for (size_t i = 0; i < shown; ++i) {
    const compiler::KernelCall& call = program.calls[i];
    const size_t number = first_kernel + static_cast<size_t>(call.kernel);
    Launch* launch = page->add_launches();
    launch->set_kernel(static_cast<uint32_t>(number + 1));
    launch->set_name(program.kernels[call.kernel].image.name);
    launch->set_device(device);
    launch->set_seconds(kernels[number].seen.seconds_median());
    launch->set_arguments(static_cast<uint32_t>(call.arguments.size()));
  }
  const size_t edges_max = kEdgesMax - static_cast<size_t>(page->edges_size());
  const std::vector<runtime::LaunchEdge> edges = runtime::LaunchEdges(program, shown, edges_max);
  page->set_edges_are_cut(page->edges_are_cut() || edges.size() == edges_max);
  for (const runtime::LaunchEdge& edge : edges) {
    Edge* proto = page->add_edges();
    proto->set_from(static_cast<uint32_t>(first_launch) + static_cast<uint32_t>(edge.from));
    proto->set_to(static_cast<uint32_t>(first_launch) + static_cast<uint32_t>(edge.to));
    proto->set_bytes(static_cast<uint64_t>(edge.bytes));
  }
}

absl::StatusOr<std::string> ExplainedProgram(const ViewParts& parts, const auth::Principal& caller,
                                             const std::string& text) {
  const auto query = Query::Parse(text, {"program"});
  if (!query.ok()) return query.status();
  const auto program = FindProgram(parts, caller, *query);
  if (!program.ok()) return program.status();
  const std::vector<KernelLine> lines = LinesOf(parts, caller, rpc::KernelsOf(*program, caller));
  ProgramPage page;
  v1::ExplainProgramResponse& explanation = *page.mutable_explanation();
  rpc::ExplainWithoutKernels(*parts.programs, caller, *program, &explanation);
  explanation.clear_graph();
  explanation.clear_partition();
  size_t first_kernel = 0;
  const runtime::ShardedProgram& sharded = (*program)->sharded();
  for (const int member : sharded.distinct()) {
    const compiler::CompiledProgram& compiled = sharded.compiled(member);
    AddLaunches(compiled, sharded.device(member).name(), first_kernel, lines, &page);
    first_kernel += compiled.kernels.size();
  }
  if (page.ByteSizeLong() > kTextBytesMax) return TooLarge("the program");
  return ToJson(page);
}

absl::StatusOr<std::string> ExplainedGraph(const ViewParts& parts, const auth::Principal& caller,
                                           const std::string& text) {
  const auto query = Query::Parse(text, {"program"});
  if (!query.ok()) return query.status();
  const auto program = FindProgram(parts, caller, *query);
  if (!program.ok()) return program.status();
  const compiler::CompiledProgram& compiled = (*program)->compiled();
  if (compiled.graph_text.size() + compiled.partition_text.size() > kTextBytesMax)
    return TooLarge("the graph");
  GraphPage page;
  page.set_graph(compiled.graph_text);
  page.set_partition(compiled.partition_text);
  return ToJson(page);
}

absl::StatusOr<std::string> ExplainedKernel(const ViewParts& parts, const auth::Principal& caller,
                                            const std::string& text) {
  const auto query = Query::Parse(text, {"program", "kernel"});
  if (!query.ok()) return query.status();
  const auto program = FindProgram(parts, caller, *query);
  if (!program.ok()) return program.status();
  const std::vector<rpc::ListedKernel> kernels = rpc::KernelsOf(*program, caller);
  const auto count = static_cast<int64_t>(kernels.size());
  if (count == 0) return absl::NotFoundError("the program has no kernels");
  const auto number = query->Number("kernel", 1, 1, count);
  if (!number.ok()) return number.status();
  const rpc::ListedKernel& listed = kernels[static_cast<size_t>(*number - 1)];
  KernelRow row;
  Fill({.listed = listed,
        .program_name = NameOf(**program, caller),
        .kind = ScheduleKind(listed.compiled())},
       caller, &row);
  absl::Status status = rpc::ExplainKernel(
      *parts.programs, caller, listed, {.source = true, .assembly = true}, row.mutable_kernel());
  if (!status.ok()) return status;
  if (row.ByteSizeLong() > kTextBytesMax) return TooLarge("the kernel");
  return ToJson(row);
}

constexpr Call kCalls[] = {
    {"overview", "/kiln.v1.AdminService/ListUsers", &OverviewPage},
    {"programs", "/kiln.v1.ProgramService/ListPrograms", &ProgramList},
    {"kernels", "/kiln.v1.ProgramService/ListKernels", &KernelList},
    {"program", kExplain, &ExplainedProgram},
    {"graph", kExplain, &ExplainedGraph},
    {"kernel", kExplain, &ExplainedKernel},
};

}  // namespace

absl::Span<const Call> Calls() { return kCalls; }

}  // namespace kiln::web
