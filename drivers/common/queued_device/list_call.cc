#include "drivers/common/queued_device/list_call.h"

#include "absl/strings/str_cat.h"
#include "drivers/common/check.h"
#include "proto/check/check.h"

namespace kiln::drivers {

ListCall::ListCall(const LaunchCommand& launch, size_t number)
    : kind(Kind::kLaunch), kernel(launch.kernel), points(PointsOf(launch)), command(number) {
  const std::vector<Access>& access = kernel->image().access;
  KILN_CHECK(access.empty() || access.size() == launch.arguments.size()) << kernel->image().name;
  operands.reserve(launch.arguments.size());
  for (size_t i = 0; i < launch.arguments.size(); ++i)
    operands.push_back({launch.arguments[i], access.empty() ? Access::kReadWrite : access[i]});
}

ListCall::ListCall(const CopyCommand& copy, size_t number)
    : kind(Kind::kCopy),
      command(number),
      operands{{copy.destination, Access::kWrite}, {copy.source, Access::kRead}} {}

ListCall::ListCall(const FillCommand& fill, size_t number)
    : kind(Kind::kFill),
      value(fill.value),
      command(number),
      operands{{fill.destination, Access::kWrite}} {}

bool ListCall::HasAddresses() const {
  return kind != Kind::kLaunch || !kernel->image().takes_slot_table;
}

std::string ListCall::WhatFailed() const {
  switch (kind) {
    case Kind::kLaunch:
      return absl::StrCat("cannot launch the kernel ", kernel->image().name);
    case Kind::kCopy:
      return absl::StrCat("cannot copy ", bytes(), " bytes");
    case Kind::kFill:
      break;
  }
  return absl::StrCat("cannot fill ", bytes(), " bytes");
}

}  // namespace kiln::drivers
