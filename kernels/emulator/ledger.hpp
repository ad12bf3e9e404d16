#pragma once
// Workloads and configs behind the public ledger: inputs that broke other people's kernels. The tests of the ledger
// (kernels/tests/spec_ledger_test.cpp) run them; the generator compiles their kernels for the emulator.

#include <string>
#include <vector>

#include "kernels/emulator/sample.hpp"

namespace rowtune::emulator {

struct LedgerCase {
  std::string report;  ///< project and number, such as `aiter_5044`
  SampledCase at;
};

/// A config of every algorithm that is legal for the workloads of a report, drawn from a seed and dealt out among them;
/// configs by name where a report is about one kind of them.
const std::vector<LedgerCase>& ledger_cases();
std::vector<SampledCase> ledger_cases_of(const std::string& report);

}  // namespace rowtune::emulator
