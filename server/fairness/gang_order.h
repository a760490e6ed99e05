// The one order in which gangs, programs that run on several devices at once, reach their devices.
//
// A list of a gang holds its device until those of the others have come as far, so two gangs that
// share devices must reach all of them in the same order. Each has an item in the queue of every
// one of its devices. Where its turn has come it is parked (Dispatcher::Park): it holds nothing,
// and the device goes on with others' work. When the last turn has come, its lists are submitted to
// all devices under this lock. So nothing waits for a device while it holds another, each device's
// fair share is kept, and a newcomer waits no longer than behind an ordinary list.
//
// A gang that takes longer than a slice comes in pieces, each of which is as such a gang: it waits
// for no list but those of the same piece. The next takes its place in front of its flow on all
// devices (Dispatcher::Continue) before the piece is submitted, so nothing of the flow overtakes
// it.
#ifndef KILN_SERVER_FAIRNESS_GANG_ORDER_H_
#define KILN_SERVER_FAIRNESS_GANG_ORDER_H_

#include "absl/synchronization/mutex.h"

namespace kiln::fairness {

// One for all devices. Taken before any dispatcher's lock.
struct GangOrder {
  absl::Mutex mutex;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_GANG_ORDER_H_
