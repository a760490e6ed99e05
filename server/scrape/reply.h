// A response that may come later, from another thread than the one that serves.
#ifndef KILN_SERVER_SCRAPE_REPLY_H_
#define KILN_SERVER_SCRAPE_REPLY_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/scrape/http.h"

namespace kiln::scrape {

// The place of the response to one request. Thread-safe. Copies name the same place.
class Reply {
 public:
  // `on_sent` is called once, by the thread that calls Send.
  explicit Reply(std::function<void()> on_sent);

  // Requires: it was not called before.
  void Send(Response response) const ABSL_LOCKS_EXCLUDED(state_->mutex);
  // False once the client has gone: the response need not be made.
  bool is_wanted() const ABSL_LOCKS_EXCLUDED(state_->mutex);

  // For the server.

  // Returns the response, once.
  std::optional<Response> Take() const ABSL_LOCKS_EXCLUDED(state_->mutex);
  bool has_come() const ABSL_LOCKS_EXCLUDED(state_->mutex);
  // The client has gone.
  void Abandon() const ABSL_LOCKS_EXCLUDED(state_->mutex);

 private:
  struct State {
    explicit State(std::function<void()> on_sent) : on_sent(std::move(on_sent)) {}

    const std::function<void()> on_sent;
    absl::Mutex mutex;
    bool is_sent ABSL_GUARDED_BY(mutex) = false;
    bool is_wanted ABSL_GUARDED_BY(mutex) = true;
    std::optional<Response> response ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_;  // shared with who makes the response
};

}  // namespace kiln::scrape

#endif  // KILN_SERVER_SCRAPE_REPLY_H_
