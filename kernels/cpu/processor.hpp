#pragma once
// What the system says of its processor.

#include <cstdint>
#include <string>

namespace rowtune::cpu {

struct Processor {
  std::string model;                                       ///< as /proc/cpuinfo names it
  int threads = 1;                                         ///< that this process may use
  std::int64_t l1_bytes = 0, l2_bytes = 0, llc_bytes = 0;  ///< of one core; of one core; shared. 0 when unknown
  std::int64_t memory_bytes = 0;
};

Processor read_processor();
std::int64_t available_memory();  ///< bytes that can be had without swapping

}  // namespace rowtune::cpu
