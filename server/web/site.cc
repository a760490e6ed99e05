#include "server/web/site.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/rpc/connections/credentials.h"
#include "server/rpc/services/answers.h"
#include "server/runtime/cache/fair_pool.h"
#include "server/web/json.h"

namespace kiln::web {
namespace {

constexpr absl::string_view kRoot = "/web/";
constexpr absl::string_view kApi = "/web/api/";
constexpr char kJsonType[] = "application/json; charset=utf-8";

using Fields = std::vector<std::pair<std::string, std::string>>;

// Of every response. The policy allows only files of this address; no script in a page, no frame
// around it, no form that a browser would send.
Fields SafeFields(std::string caching) {
  return {{"Cache-Control", std::move(caching)},
          {"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
           "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
           "frame-ancestors 'none'"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Referrer-Policy", "no-referrer"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"}};
}

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

scrape::Response NotFound() {
  return {.status = 404,
          .body = "not found: the page is /web/\n",
          .content_type = "text/plain; charset=utf-8",
          .fields = SafeFields("no-store")};
}

}  // namespace

Site::Site(Options options) : options_(std::move(options)) {
  KILN_CHECK(options_.access != nullptr && options_.is_open != nullptr);
  KILN_CHECK(options_.parts.devices != nullptr && options_.parts.programs != nullptr &&
             options_.parts.admin != nullptr);
}

Site::~Site() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](int* under_way) { return *under_way == 0; }, &under_way_));
}

bool Site::Respond(const scrape::Request& request, const scrape::Reply& reply) {
  const bool leads_here = request.path == "/" || request.path == "/web";
  if (!leads_here && !absl::StartsWith(request.path, kRoot)) return false;
  if (request.method != "GET" && request.method != "HEAD") {
    reply.Send(
        {.status = 405, .body = "method not allowed: use GET\n", .fields = SafeFields("no-store")});
  } else if (leads_here) {
    Fields fields = SafeFields("no-store");
    fields.emplace_back("Location", kRoot);
    reply.Send({.status = 302, .fields = std::move(fields)});
  } else if (absl::StartsWith(request.path, kApi)) {
    Begin(request, std::string(absl::StripPrefix(request.path, kApi)), reply);
  } else {
    reply.Send(FileOf(request.path));
  }
  return true;
}

scrape::Response Site::FileOf(const std::string& path) const {
  absl::string_view name = absl::StripPrefix(path, kRoot);
  const bool is_page = name.empty();
  // Files of another version would not fit together.
  if (is_page) {
    name = "index.html";
  } else if (!absl::ConsumePrefix(&name, absl::StrCat(options_.version, "/"))) {
    return NotFound();
  }
  const auto file = std::find_if(options_.files.begin(), options_.files.end(),
                                 [&](const PageFile& other) { return other.name == name; });
  if (file == options_.files.end()) return NotFound();
  return {.body = std::string(file->bytes),
          .content_type = std::string(file->content_type),
          .fields = SafeFields(is_page ? "no-cache" : "public, max-age=31536000, immutable")};
}

absl::Status Site::CheckOrigin(const scrape::Request& request) const {
  const std::string& site = request.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none")
    return absl::PermissionDeniedError("only the daemon's own page may make this call");
  return rpc::CheckHost(request.host, options_.is_open());
}

void Site::Begin(const scrape::Request& request, const std::string& name,
                 const scrape::Reply& reply) {
  const auto calls = Calls();
  const auto call = std::find_if(calls.begin(), calls.end(),
                                 [&](const Call& other) { return other.name == name; });
  if (call == calls.end()) return reply.Send(NotFound());
  if (absl::Status status = CheckOrigin(request); !status.ok()) return reply.Send(Refuse(status));
  const rpc::Access::Credentials credentials = {.listener = options_.listener,
                                                .authorization = request.authorization};
  if (absl::Status status = options_.access->Check(credentials, std::string(call->method));
      !status.ok())
    return reply.Send(Refuse(status));
  const auto caller = options_.access->Identify(credentials);
  if (!caller.ok()) return reply.Send(Refuse(caller.status()));
  Schedule(*call, *caller, request.query, reply);
}

void Site::Schedule(const Call& call, const auth::Principal& caller, const std::string& query,
                    const scrape::Reply& reply) {
  {
    absl::MutexLock lock(&mutex_);
    ++under_way_;
  }
  const rpc::ProgramServiceParts& parts = *options_.parts.programs;
  const auto user = parts.registry->GetUser(caller.user);
  const bool is_queued = parts.explanations->TrySchedule(
      user->host->user(), rpc::kExplanationsWaitingMax, [this, &call, caller, query, reply] {
        // The client may have gone while the call waited.
        if (reply.is_wanted()) Run(call, caller, query, reply);
        absl::MutexLock lock(&mutex_);
        --under_way_;
      });
  if (is_queued) return;
  reply.Send(Refuse(rpc::TooManyExplanations()));
  absl::MutexLock lock(&mutex_);
  --under_way_;
}

void Site::Run(const Call& call, const auth::Principal& caller, const std::string& query,
               const scrape::Reply& reply) {
  const auto user = options_.parts.programs->registry->GetUser(caller.user);
  auto answer = call.answer(options_.parts, caller, query);
  if (!answer.ok()) {
    options_.parts.programs->metrics->Failed(answer.status().code());
    return reply.Send(Refuse(answer.status()));
  }
  auto charge = std::make_shared<memory::Charge>(user->host->Open(memory::Use::kTransfers));
  const auto bytes = static_cast<int64_t>(answer->size());
  if (bytes > rpc::kSmallAnswer) {
    // The answer, and the copy of it that has a header.
    if (absl::Status status = charge->Resize(2 * bytes); !status.ok())
      return reply.Send(Refuse(user->Explain(status)));
  }
  reply.Send({.body = *std::move(answer),
              .content_type = kJsonType,
              .fields = SafeFields("no-store"),
              .held = std::move(charge)});
}

scrape::Response Site::Refuse(const absl::Status& why) const {
  scrape::Response response = {.status = HttpStatusOf(why),
                               .body = ErrorJson(why),
                               .content_type = kJsonType,
                               .fields = SafeFields("no-store")};
  // Not "Basic", for which browsers ask by themselves, and send it from then on unasked.
  if (response.status == 401) response.fields.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace kiln::web
