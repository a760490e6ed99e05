#include "clients/cli/explain_page.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/cli/command.h"
#include "clients/cli/format.h"
#include "clients/cli/kernel_table.h"
#include "proto/text/printable.h"

namespace kiln::cli {
namespace {

// Nothing may be loaded, whatever a text says: no script, no image, no other page.
constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
)";
constexpr char kStyle[] = R"(<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #8884; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; padding: .8rem; background: #8881; font-size: 13px; line-height: 1.4; }
summary { cursor: pointer; padding: .2rem 0; }
.bar { background: #3b82f6; height: .7rem; min-width: 1px; }
details details { margin-left: 1.5rem; }
</style>
)";

std::string Escaped(std::string_view text) {
  return absl::StrReplaceAll(
      PrintableLines(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string NumberCell(const std::string& text) {
  return absl::StrCat("<td class=\"number\">", Escaped(text), "</td>");
}

void AddPart(std::string_view title, const std::string& text, std::string* page) {
  if (text.empty()) return;
  absl::StrAppend(page, "<details><summary>", Escaped(title), "</summary><pre>", Escaped(text),
                  "</pre></details>\n");
}

void AddFact(std::string_view name, const std::string& text, std::string* page) {
  absl::StrAppend(page, "<tr><th>", Escaped(name), "</th><td>", Escaped(text), "</td></tr>\n");
}

void AddProgram(const v1::Program& program, std::string* page) {
  absl::StrAppend(page, "<h1>", Escaped(program.name().empty() ? "A program" : program.name()),
                  "</h1>\n<table>\n");
  AddFact("digest", program.digest(), page);
  AddFact("devices", DevicesText(program), page);
  AddFact("kernels",
          absl::StrCat(program.kernels(), " launches of ", program.distinct_kernels(), " kernels, ",
                       program.kernels_from_cache(), " from the cache; compiled in ",
                       Duration(program.compile_seconds())),
          page);
  AddFact("arena",
          absl::StrCat(Bytes(program.arena_bytes()), " (",
                       Bytes(program.arena_bytes_without_reuse()), " without reuse)"),
          page);
  AddFact("runs",
          absl::StrCat(program.runs(), ", ", Duration(program.device_seconds()), " on the device"),
          page);
  absl::StrAppend(page, "</table>\n");
}

// Returns the kernels' places, the most expensive first.
std::vector<int> ByTime(const v1::ExplainProgramResponse& answer) {
  std::vector<int> order(static_cast<size_t>(answer.kernels_size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int one, int other) {
    return SecondsPerRun(answer.kernels(one)) > SecondsPerRun(answer.kernels(other));
  });
  return order;
}

void AddTimes(const v1::ExplainProgramResponse& answer, std::string* page) {
  double total = 0;
  for (const v1::Kernel& kernel : answer.kernels()) total += SecondsPerRun(kernel);
  absl::StrAppend(
      page,
      "<h2>Time per kernel</h2>\n<table>\n<tr><th class=\"number\">#</th><th>kernel</th>"
      "<th class=\"number\">launches</th><th class=\"number\">median</th>"
      "<th class=\"number\">share</th><th>of the run</th><th class=\"number\">compute"
      "</th><th class=\"number\">memory</th><th>roofline</th></tr>\n");
  for (const int i : ByTime(answer)) {
    const v1::Kernel& kernel = answer.kernels(i);
    const double share = total > 0 ? SecondsPerRun(kernel) / total : 0;
    const bool has_roofline = kernel.roofline_seconds() > 0 && kernel.seconds_median() > 0;
    absl::StrAppend(
        page, "<tr>", NumberCell(absl::StrCat(i + 1)), "<td><a href=\"#kernel", i + 1, "\">",
        Escaped(kernel.name()), "</a></td>", NumberCell(absl::StrCat(kernel.launches())),
        NumberCell(MedianText(kernel)), NumberCell(total > 0 ? Percent(share) : "-"),
        "<td><div class=\"bar\" style=\"width:", Percent(share), "\"></div></td>",
        NumberCell(Rate(static_cast<double>(kernel.flops()), kernel.seconds_median(), "FLOP")),
        NumberCell(Rate(static_cast<double>(kernel.bytes()), kernel.seconds_median(), "B")), "<td>",
        has_roofline
            ? Escaped(absl::StrCat(Percent(kernel.roofline_seconds() / kernel.seconds_median()),
                                   " of ", kernel.roofline_limit()))
            : std::string("-"),
        "</td></tr>\n");
  }
  absl::StrAppend(page, "</table>\n");
}

void AddFirstCall(const v1::ExplainProgramResponse& answer, std::string* page) {
  if (answer.first_call().empty()) return;
  absl::StrAppend(page, "<details><summary>First call</summary><table>\n");
  for (const v1::FirstCallPart& part : answer.first_call())
    AddFact(part.name(), Duration(part.seconds()), page);
  absl::StrAppend(page, "</table></details>\n");
}

void AddPasses(const v1::ExplainProgramResponse& answer, std::string* page) {
  if (answer.passes().empty()) return;
  absl::StrAppend(page, "<details><summary>Passes</summary><table>\n");
  for (const v1::PassReport& pass : answer.passes())
    AddFact(pass.pass(), pass.disabled() ? "off" : Duration(pass.seconds()), page);
  absl::StrAppend(page, "</table>\n");
  for (const v1::PassReport& pass : answer.passes())
    AddPart(absl::StrCat("after ", pass.pass()), pass.text(), page);
  absl::StrAppend(page, "</details>\n");
}

void AddKernel(int number, const v1::Kernel& kernel, std::string* page) {
  absl::StrAppend(page, "<details id=\"kernel", number, "\"><summary>", number, " ",
                  Escaped(kernel.name()), ": ", Escaped(MedianText(kernel)), " each</summary>\n");
  AddPart("setting of a search", kernel.setting(), page);
  AddPart("the setting cannot be used", kernel.setting_refusal(), page);
  AddPart("loops", kernel.ir(), page);
  AddPart("schedule", kernel.schedule(), page);
  AddPart("refused schedule", kernel.refused_schedule(), page);
  AddPart("refusal", kernel.refusal(), page);
  AddPart("source", kernel.source(), page);
  AddPart("assembly", kernel.assembly(), page);
  absl::StrAppend(page, "</details>\n");
}

}  // namespace

std::string ExplanationPage(const v1::ExplainProgramResponse& answer) {
  std::string page = absl::StrCat(kHead, "<title>", Escaped(answer.program().name()),
                                  " - kiln explain</title>\n", kStyle, "</head>\n<body>\n");
  AddProgram(answer.program(), &page);
  AddTimes(answer, &page);
  absl::StrAppend(&page, "<h2>How it was compiled</h2>\n");
  AddFirstCall(answer, &page);
  AddPasses(answer, &page);
  AddPart("Graph", answer.graph(), &page);
  AddPart("Fused kernels", answer.partition(), &page);
  AddPart("Queue", answer.queue(), &page);
  absl::StrAppend(&page, "<h2>Kernels</h2>\n");
  for (int i = 0; i < answer.kernels_size(); ++i) AddKernel(i + 1, answer.kernels(i), &page);
  absl::StrAppend(&page, "<p>kiln ", ClientVersion(), "</p>\n</body>\n</html>\n");
  return page;
}

}  // namespace kiln::cli
