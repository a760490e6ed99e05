// The global order in which gangs, programs that run on several devices at once, get their devices.
//
// A list of a gang holds its device until the gang's other lists have progressed as far, so two
// gangs that share devices must get all of them in the same order. Each gang has an item in the
// queue of each of its devices. When its turn comes on one device it is parked (Dispatcher::Park):
// it holds nothing, and the device continues with other work. When the last turn has come, its
// lists are submitted to all devices under this lock. So no gang waits for a device while it holds
// another, each device's fair shares are kept, and a newcomer waits no longer than after an
// ordinary list.
//
// A gang that takes longer than a slice comes in pieces, each of which is a gang itself: it only
// waits for lists of the same piece. The next piece is put at the front of its flow on all devices
// (Dispatcher::Continue) before the piece is submitted, so nothing of the flow overtakes it.
#ifndef KILN_SERVER_FAIRNESS_GANG_ORDER_H_
#define KILN_SERVER_FAIRNESS_GANG_ORDER_H_

#include "absl/synchronization/mutex.h"

namespace kiln::fairness {

// One object for all devices. Its mutex is locked before any dispatcher's.
struct GangOrder {
  absl::Mutex mutex;
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_GANG_ORDER_H_
