// The table of kernels that `kiln kernels` and `kiln explain` show.
#ifndef KILN_CLIENTS_CLI_KERNEL_TABLE_H_
#define KILN_CLIENTS_CLI_KERNEL_TABLE_H_

#include <string>

#include "clients/cli/table.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "kiln/v1/program.pb.h"

namespace kiln::cli {

// Returns the seconds that all launches of the kernel take in one run of its program; 0 if it was
// never timed.
double SecondsPerRun(const v1::Kernel& kernel);

// Returns the median time of a launch; "(cold)" marks the time of a program's first run, if no
// later run has been timed yet.
std::string MedianText(const v1::Kernel& kernel);

// Returns one row a kernel, numbered from 1 in the order given, with its share of the total time.
Table KernelTable(const google::protobuf::RepeatedPtrField<v1::Kernel>& kernels);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_KERNEL_TABLE_H_
