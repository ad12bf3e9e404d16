// Cases with known answers, and the decimal numbers in them.

#include "kernels/tests/fuzz.hpp"
#include "stability/cases.hpp"

using namespace rowtune;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const stability::KnownCase& known : stability::parse_cases(fuzz::text_of(data, size), "input")) {
      fuzz::require(!known.input.empty(), "a case has an input");
      fuzz::require(known.output.empty() || known.output.size() == known.input.size(), "outputs match inputs");
    }
  } catch (const EnvironmentError&) {
  }
  return 0;
}
