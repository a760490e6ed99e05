#include "server/auth/method_table.h"

#include <google/protobuf/descriptor.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kiln/v1/admin.pb.h"
#include "kiln/v1/blob.pb.h"
#include "kiln/v1/device.pb.h"
#include "kiln/v1/program.pb.h"
#include "kiln/v1/session.pb.h"
#include "kiln/v1/trace.pb.h"

namespace kiln::auth {
namespace {

// The methods of every service in proto/kiln/v1.
std::set<std::string> AllMethods() {
  std::set<std::string> methods;
  for (const auto* file :
       {v1::GetDaemonRequest::descriptor()->file(), v1::FindBlobsRequest::descriptor()->file(),
        v1::Device::descriptor()->file(), v1::Program::descriptor()->file(),
        v1::Session::descriptor()->file(), v1::TraceRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      const auto* service = file->service(i);
      for (int j = 0; j < service->method_count(); ++j)
        methods.insert(absl::StrCat("/", service->full_name(), "/", service->method(j)->name()));
    }
  }
  return methods;
}

TEST(MethodTable, HasEveryMethodAndNoOther) {
  std::set<std::string> listed;
  for (const MethodRule& rule : MethodTable()) {
    EXPECT_TRUE(listed.insert(std::string(rule.method)).second) << rule.method << " twice";
  }
  const std::set<std::string> methods = AllMethods();
  EXPECT_EQ(methods.size(), 37);
  for (const std::string& method : methods)
    EXPECT_TRUE(listed.count(method)) << method << " has no row in method_table.cc";
  for (const std::string& method : listed) {
    if (!absl::StartsWith(method, "/kiln.v1.")) continue;
    EXPECT_TRUE(methods.count(method)) << method << " is no method";
  }
}

TEST(MethodTable, UnknownMethodsHaveNoRole) {
  EXPECT_FALSE(LeastRole("/kiln.v1.AdminService/Destroy"));
  EXPECT_FALSE(LeastRole("/kiln.v1.AdminService/drain"));
  EXPECT_FALSE(LeastRole(""));
  EXPECT_EQ(LeastRole("/kiln.v1.AdminService/Drain"), Role::kAdmin);
  EXPECT_EQ(LeastRole("/kiln.v1.SessionService/OpenSession"), Role::kUser);
  EXPECT_EQ(LeastRole("/kiln.v1.SessionService/EndSession"), Role::kUser);
  EXPECT_EQ(LeastRole("/kiln.v1.DeviceService/ListDevices"), Role::kViewer);
}

}  // namespace
}  // namespace kiln::auth
