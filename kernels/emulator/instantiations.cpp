#include "kernels/emulator/instantiations.hpp"

#include <unordered_map>

namespace rowtune::emulator {

const Instantiation* instantiation_of(const cuda::Plan& plan) {
  static const auto index = [] {
    std::unordered_map<std::uint64_t, const Instantiation*> map;
    for (const Instantiation& i : instantiations()) map.emplace(i.source, &i);
    return map;
  }();
  const auto at = index.find(source_key(plan));
  return at == index.end() ? nullptr : at->second;
}

}  // namespace rowtune::emulator
