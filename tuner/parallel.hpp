#pragma once
// Work on all cores of the host.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <thread>
#include <vector>

namespace rowtune {

/// Calls f(0) to f(count - 1), in any order, on as many threads as there are cores. Throws what f threw first.
template <class F>
void for_each_index(std::size_t count, const F& f) {
  std::atomic<std::size_t> next{0};
  std::vector<std::future<void>> threads;
  const std::size_t wanted = std::min<std::size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  for (std::size_t t = 0; t < wanted; ++t)
    threads.push_back(std::async(std::launch::async, [&] {
      for (std::size_t i = next++; i < count; i = next++) f(i);
    }));
  for (auto& thread : threads) thread.get();
}

}  // namespace rowtune
