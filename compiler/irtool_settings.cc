#include "compiler/irtool_settings.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/directives/words.h"
#include "compiler/search/space.h"
#include "drivers/interface/target.h"

namespace kiln {
namespace {

using drivers::Capabilities;
using drivers::Limits;
using search::PartKnob;
using search::Setting;
using search::Space;

struct Device {
  search::Machine machine = search::Machine::kLanes;
  drivers::Target target;
};

struct IntField {
  std::string_view name;
  int Limits::*field;
};
constexpr IntField kIntFields[] = {
    {"vector_bytes", &Limits::vector_bytes},
    {"vector_registers", &Limits::vector_registers},
    {"compute_units", &Limits::compute_units},
    {"threads_per_block", &Limits::threads_per_block},
    {"threads_per_subgroup", &Limits::threads_per_subgroup},
    {"threads_per_unit", &Limits::threads_per_unit},
    {"threads_per_shuffle", &Limits::threads_per_shuffle},
    {"bytes_per_access", &Limits::bytes_per_access},
};

struct BytesField {
  std::string_view name;
  int64_t Limits::*field;
};
constexpr BytesField kBytesFields[] = {
    {"register_bytes_per_unit", &Limits::register_bytes_per_unit},
    {"shared_bytes_per_block", &Limits::shared_bytes_per_block},
    {"near_memory_bytes", &Limits::near_memory_bytes},
    {"private_cache_bytes", &Limits::private_cache_bytes},
};

struct SwitchField {
  std::string_view name;
  bool Capabilities::*field;
};
constexpr SwitchField kSwitchFields[] = {
    {"matrix", &Capabilities::matrix},
    {"async_copies", &Capabilities::async_copies},
};

// Returns whether there is such a field.
bool SetField(std::string_view name, int64_t value, drivers::Target* target) {
  for (const IntField& field : kIntFields) {
    if (field.name == name) target->limits.*field.field = static_cast<int>(value);
    if (field.name == name) return true;
  }
  for (const BytesField& field : kBytesFields) {
    if (field.name == name) target->limits.*field.field = value;
    if (field.name == name) return true;
  }
  for (const SwitchField& field : kSwitchFields) {
    if (field.name == name) target->capabilities.*field.field = value != 0;
    if (field.name == name) return true;
  }
  return false;
}

std::string FieldNames() {
  std::string names = "threads";
  for (const IntField& field : kIntFields) StrAppend(&names, ", ", field.name);
  for (const BytesField& field : kBytesFields) StrAppend(&names, ", ", field.name);
  for (const SwitchField& field : kSwitchFields) StrAppend(&names, ", ", field.name);
  return names;
}

absl::StatusOr<Device> ParseDevice(std::string_view text) {
  Device device;
  for (const std::string_view word : schedule::SplitText(text, ' ')) {
    if (word == "threads") {
      device.machine = search::Machine::kThreads;
      device.target.limits.vector_bytes = 4;
      device.target.costs = drivers::kGpuCosts;
      continue;
    }
    const size_t equals = std::min(word.find('='), word.size() - 1);
    int64_t value;
    if (!absl::SimpleAtoi(View(word.substr(equals + 1)), &value) || value < 0 ||
        value > INT32_MAX || !SetField(word.substr(0, equals), value, &device.target)) {
      return absl::InvalidArgumentError(
          StrCat("'", word, "' is not FIELD=NUMBER; the fields are ", FieldNames()));
    }
  }
  return device;
}

std::string PartName(int part) {
  return part == search::kKernelPart ? "kernel" : StrCat("stage ", part);
}

std::string PrintKnob(const PartKnob& knob, const Setting& setting) {
  const search::Knob number = knob.knob.knob;
  const int64_t chosen = setting.parts.at(knob.part)[number];
  std::string text = StrCat(PartName(knob.part), " ", search::RowOf(number).name, ":");
  for (const int64_t value : knob.knob.values) {
    const std::string printed = search::PrintValue(number, value);
    StrAppend(&text, " ", value == chosen ? StrCat("[", printed, "]") : printed);
  }
  return StrCat(text, "  # ", search::RowOf(number).decides, "\n");
}

std::string PrintCost(const Space& space, const Setting& setting) {
  const std::optional<double> cost = space.Estimate(setting);
  return cost ? StrCat("# cost by the heuristic's model: ", *cost, "\n") : "";
}

}  // namespace

absl::StatusOr<std::string> PrintSpace(std::string_view kernel_text, std::string_view device_text) {
  ir::Context context;
  const auto device = ParseDevice(device_text);
  if (!device.ok()) return device.status();
  const auto kernel = kernel::ParseKernel(kernel_text, context);
  if (!kernel.ok()) return kernel.status();
  const Space space(*kernel, device->target, device->machine);
  std::string text;
  for (const PartKnob& knob : space.Knobs(space.heuristic())) {
    text += PrintKnob(knob, space.heuristic());
  }
  return StrCat(text, "\n", PrintCost(space, space.heuristic()), search::Print(space.heuristic()));
}

absl::StatusOr<std::string> PrintSchedule(std::string_view kernel_text,
                                          std::string_view device_text,
                                          std::string_view setting_text) {
  ir::Context context;
  const auto device = ParseDevice(device_text);
  if (!device.ok()) return device.status();
  const auto kernel = kernel::ParseKernel(kernel_text, context);
  if (!kernel.ok()) return kernel.status();
  auto parsed = search::ParseSetting(setting_text);
  if (!parsed.ok()) return parsed.status();
  const Space space(*kernel, device->target, device->machine);
  const Setting setting = space.Complete(parsed->setting, &parsed->ignored);
  const auto schedule = space.Write(setting);
  if (!schedule.ok()) return schedule.status();
  std::string text;
  for (const std::string& why : parsed->ignored) StrAppend(&text, "# ignored: ", why, "\n");
  return StrCat(text, PrintCost(space, setting), schedule::Print(*schedule));
}

}  // namespace kiln
