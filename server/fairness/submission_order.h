// The global order in which joint work, whose lists run on several devices at once, gets its
// devices.
//
// A list of joint work holds its device until the work's other lists have progressed as far, so two
// works that share devices must get all of them in the same order. Each has an item in the queue of
// each of its devices. When its turn comes on one device it is parked (Dispatcher::Park): it holds
// nothing, and the device continues with other work. When the last turn has come, its lists are
// submitted to all devices under this lock. So no work waits for a device while it holds another,
// each device's fair shares are kept, and a newcomer waits no longer than after an ordinary list.
//
// Work that takes longer than a slice comes in pieces, each of which is joint work itself: it only
// waits for lists of the same piece. The next piece is put at the front of its flow on all devices
// (Dispatcher::Continue, or Submit's kSome) before anything else of the flow can start, so nothing
// overtakes it.
//
// Work on one device does not use this: its first turn is its last one.
#ifndef KILN_SERVER_FAIRNESS_SUBMISSION_ORDER_H_
#define KILN_SERVER_FAIRNESS_SUBMISSION_ORDER_H_

#include "absl/synchronization/mutex.h"

namespace kiln::fairness {

// One object for all devices. Its mutex is locked before any dispatcher's.
struct SubmissionOrder {
  absl::Mutex mutex;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_SUBMISSION_ORDER_H_
