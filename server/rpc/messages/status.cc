#include "server/rpc/messages/status.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"

namespace kiln::rpc {
namespace {
constexpr char kErrorInfoType[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kQuotaFailureType[] = "type.googleapis.com/google.rpc.QuotaFailure";
constexpr char kDomain[] = "kiln";

void AddDetail(const char* type, const google::protobuf::Message& detail, v1::Status* proto) {
  google::protobuf::Any* any = proto->add_details();
  any->set_type_url(type);
  any->set_value(detail.SerializeAsString());
}

// If the limited resource is known.
void AddQuotaFailure(const v1::ErrorInfo& info, v1::Status* proto) {
  const auto& details = info.metadata();
  const auto limit = details.find("limit");
  if (proto->code() != static_cast<int>(absl::StatusCode::kResourceExhausted) ||
      limit == details.end())
    return;
  v1::QuotaFailure failure;
  v1::QuotaFailure::Violation* violation = failure.add_violations();
  violation->set_subject("daemon");
  for (const char* subject : {"device", "user"})
    if (const auto found = details.find(subject); found != details.end())
      violation->set_subject(absl::StrCat(subject, ":", found->second));
  violation->set_description(proto->message());
  const auto quota = details.find("quota");
  violation->set_quota_metric(quota != details.end() ? quota->second : info.reason());
  int64_t value = 0;
  if (absl::SimpleAtoi(limit->second, &value)) violation->set_quota_value(value);
  AddDetail(kQuotaFailureType, failure, proto);
}
}  // namespace

v1::Status ToProto(const absl::Status& status) {
  v1::ErrorInfo info;
  info.set_reason(errors::Reason(status));
  info.set_domain(kDomain);
  for (const auto& [key, value] : errors::Details(status)) (*info.mutable_metadata())[key] = value;
  v1::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(errors::WithBoundedMessage(status).message()));
  AddDetail(kErrorInfoType, info, &proto);
  AddQuotaFailure(info, &proto);
  return proto;
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const v1::Status proto = ToProto(status);
  // The message is in both places, for clients that do not read the details.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), proto.message(),
                      proto.SerializeAsString());
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp proto;
  const int64_t seconds = absl::ToUnixSeconds(time);
  proto.set_seconds(seconds);
  proto.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return proto;
}

absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace kiln::rpc
