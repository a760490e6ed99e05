#include "server/rpc/status.h"

#include "server/errors/errors.h"

namespace kiln::rpc {
namespace {
constexpr char kErrorInfoType[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kDomain[] = "kiln";
}  // namespace

v1::Status ToProto(const absl::Status& status) {
  v1::ErrorInfo info;
  info.set_reason(errors::Reason(status));
  info.set_domain(kDomain);
  for (const auto& [key, value] : errors::Details(status)) (*info.mutable_metadata())[key] = value;
  v1::Status proto;
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(errors::WithBoundedMessage(status).message()));
  google::protobuf::Any* detail = proto.add_details();
  detail->set_type_url(kErrorInfoType);
  detail->set_value(info.SerializeAsString());
  return proto;
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const v1::Status proto = ToProto(status);
  // The message stands in both, for clients that do not read the details.
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
