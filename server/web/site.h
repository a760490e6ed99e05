// The web view on the metrics address: the page, and what it asks for.
#ifndef KILN_SERVER_WEB_SITE_H_
#define KILN_SERVER_WEB_SITE_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/auth/principal.h"
#include "server/rpc/access.h"
#include "server/scrape/http.h"
#include "server/scrape/reply.h"
#include "server/web/page_files.h"
#include "server/web/view.h"

namespace kiln::web {

// Serves /web/ (the page), /web/VERSION/FILE (its files) and /web/api/CALL (view.h), all read-only.
// "/" leads to the page.
//
// The files are the same for everyone and contain nothing of the daemon, so they need no token: the
// page asks for one. Calls need it in the header Authorization, which no browser sends by itself;
// so a page of another site can make a browser send a call, but never one with a token. While the
// daemon has no users and calls need no token, calls must name this machine as their host, because
// a hostile site could otherwise lead its own name to 127.0.0.1 and read the answers (DNS
// rebinding).
//
// Thread-safe. Calls run on the pool of explanations, fairly for each user, so that they hold up no
// scrape. Their answers are charged to the caller until they are sent.
class Site {
 public:
  struct Options {
    ViewParts parts;
    rpc::Access* access = nullptr;
    int listener = 0;  // of `access`
    // Whether calls need no token at present.
    std::function<bool()> is_open;
    absl::Span<const PageFile> files = PageFiles();
    std::string version = std::string(PageVersion());
  };
  // Requires: everything in the options is set and outlives this.
  explicit Site(Options options);
  // Waits for the calls under way.
  ~Site();

  // As scrape::Pages.
  bool Respond(const scrape::Request& request, const scrape::Reply& reply)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  scrape::Response FileOf(const std::string& path) const;
  // Answers calls that are refused, and schedules others.
  void Begin(const scrape::Request& request, const std::string& name, const scrape::Reply& reply)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckOrigin(const scrape::Request& request) const;
  void Schedule(const Call& call, const auth::Principal& caller, const std::string& query,
                const scrape::Reply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const Call& call, const auth::Principal& caller, const std::string& query,
           const scrape::Reply& reply);
  scrape::Response Refuse(const absl::Status& why) const;

  const Options options_;
  absl::Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::web

#endif  // KILN_SERVER_WEB_SITE_H_
