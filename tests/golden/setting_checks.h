// Checks of each setting of a space.
#ifndef KILN_TESTS_GOLDEN_SETTING_CHECKS_H_
#define KILN_TESTS_GOLDEN_SETTING_CHECKS_H_

#include <string>

#include "compiler/kernel/kernel.h"
#include "compiler/search/space.h"

namespace kiln::golden {

// Returns an empty text if the space refuses the setting with a reason, or its schedule computes
// the kernel, as the proof says, and has features. Else what is wrong, with setting, kernel and
// schedule. Counts legal settings in `legal`.
std::string FaultOf(const kernel::Kernel& kernel, const search::Space& space,
                    const search::Setting& setting, int* legal);

}  // namespace kiln::golden

#endif  // KILN_TESTS_GOLDEN_SETTING_CHECKS_H_
