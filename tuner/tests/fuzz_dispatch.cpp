// Dispatch tables as JSON: what was read is written as it was, and looked up.

#include "kernels/tests/fuzz.hpp"
#include "tuner/dispatch_table.hpp"

using namespace rowtune;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const DispatchTables tables = parse_dispatch(std::string(fuzz::text_of(data, size)), "input");
    const std::string json = to_json(tables);
    fuzz::require(to_json(parse_dispatch(json, "again")) == json,
                  "a table that was read can be written and read again");
  } catch (const EnvironmentError&) {
  }
  return 0;
}
