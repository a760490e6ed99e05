#include "server/rpc/access.h"

#include <grpcpp/security/auth_context.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::rpc {
namespace {

using ::testing::HasSubstr;

struct NoProperties : grpc::AuthPropertyIterator {};

// The context of a connection. Only its properties matter here; listing them is not needed.
class FakeConnection : public grpc::AuthContext {
 public:
  bool IsPeerAuthenticated() const override { return false; }
  std::vector<grpc::string_ref> GetPeerIdentity() const override { return {}; }
  std::string GetPeerIdentityPropertyName() const override { return ""; }
  std::vector<grpc::string_ref> FindPropertyValues(const std::string& name) const override {
    std::vector<grpc::string_ref> values;
    const auto [first, end] = properties_.equal_range(name);
    for (auto each = first; each != end; ++each) values.emplace_back(each->second);
    return values;
  }
  grpc::AuthPropertyIterator begin() const override { return NoProperties(); }
  grpc::AuthPropertyIterator end() const override { return NoProperties(); }
  void AddProperty(const std::string& key, const grpc::string_ref& value) override {
    properties_.emplace(key, std::string(value.data(), value.size()));
  }
  bool SetPeerIdentityPropertyName(const std::string&) override { return false; }

 private:
  std::multimap<std::string, std::string> properties_;
};

class AccessTest : public ::testing::Test {
 protected:
  ~AccessTest() override { std::filesystem::remove_all(folder_); }
  // Makes the first call of a new connection, with this many headers of 100 bytes.
  grpc::Status Call(int headers) {
    std::vector<std::string> names;
    for (int i = 0; i < headers; ++i) names.push_back(absl::StrCat("header-", i));
    const std::string value(90, 'v');
    std::multimap<grpc::string_ref, grpc::string_ref> metadata = {
        {":path", "/kiln.v1.SessionService/OpenSession"}};
    for (const std::string& name : names) metadata.emplace(name, value);
    FakeConnection connection;
    std::multimap<std::string, std::string> consumed;
    std::multimap<std::string, std::string> response;
    return processor_->Process(metadata, &connection, &consumed, &response);
  }

  static std::string MakeFolder() {
    std::string pattern = ::testing::TempDir() + "kiln_access_XXXXXX";
    return mkdtemp(pattern.data());
  }
  const std::string folder_ = MakeFolder();
  metrics::Metrics metrics_{"test"};
  std::unique_ptr<auth::UserStore> store_ = *auth::UserStore::Open(folder_ + "/users");
  auth::Authenticator users_{{.store = store_.get(),
                              .key = *cache::Secret::Open(folder_ + "/key"),
                              .now = [] { return absl::Now(); }}};
  std::unique_ptr<auth::AuditLog> audit_ =
      *auth::AuditLog::Open(folder_ + "/audit", *cache::Secret::Open(folder_ + "/audit_key"));
  Access access_{{&users_, audit_.get(), &metrics_, SystemClock()}};
  int accepted_ = 0;
  std::shared_ptr<grpc::AuthMetadataProcessor> processor_ =
      access_.AddListener(Entrance::kLoopback, [this] { ++accepted_; }).processor;
};

// gRPC calls the check with incomplete headers when the connection ends. The acceptance would be
// attributed to another connection.
TEST_F(AccessTest, HeadersWithoutEndAreNoCall) {
  EXPECT_TRUE(Call(10).ok());
  EXPECT_EQ(accepted_, 1);
  const grpc::Status status = Call(1000);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("headers"));
  EXPECT_EQ(accepted_, 1);
}

}  // namespace
}  // namespace kiln::rpc
