#pragma once
// What tuned kernels really output: each config of a database runs on rows of the study, and its errors against the
// references go back into the database beside its time (view `accuracy`; `best --max-error` respects them).

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "db/database.hpp"
#include "kernels/device.hpp"
#include "stability/table.hpp"

namespace rowtune::stability {

/// A row that kernels are run on.
struct KernelInput {
  std::string name;
  std::vector<double> values;    ///< rounded to the dtype
  std::vector<double> residual;  ///< fused_add_rmsnorm only
};

/// The rows for this operation, dtype and number of columns: the same each time.
std::vector<KernelInput> kernel_inputs(const Workload& workload);

struct KernelErrorsRequest {
  db::BestQuery query;                                   ///< which of the recorded workloads
  bool again = false;                                    ///< also what has errors recorded already
  std::uint64_t most_elements = std::uint64_t{1} << 24;  ///< of all inputs of a workload together; beyond: fewer inputs
};

struct KernelErrorsCounts {
  std::int64_t configs = 0;           ///< measured now
  std::int64_t present = 0;           ///< had their errors in the database
  std::int64_t failed = 0;            ///< timed once, but did not run now
  std::int64_t outdated = 0;          ///< of other sources or another toolchain than this program's: other kernels
  std::vector<std::string> failures;  ///< one sentence each
};

/// Measures every config that ran right in the database on this device's model. One launch computes all inputs of a
/// workload, a row each; workloads that differ only in their number of rows share it. One commit a workload.
KernelErrorsCounts measure_kernels(
    Device& device, db::Database& database, const KernelErrorsRequest& request,
    const std::function<void(std::size_t done, std::size_t total, const std::string& what)>& progress);

/// One line for each operation, dtype, number of columns and input: the range of the largest errors, and who has them.
Table kernel_errors_table(const std::vector<db::AccuracyRow>& rows);

}  // namespace rowtune::stability
