#include "stability/datasets.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "stability/decimal.hpp"
#include "stability/embedded.hpp"

namespace rowtune::stability {
namespace {

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(separators, at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

}  // namespace

const std::vector<CertifiedSet>& certified_sets() {
  static const std::vector<CertifiedSet> sets = [] {
    const auto certified = nlohmann::ordered_json::parse(embedded("data/nist/certified.json"));
    std::vector<CertifiedSet> all;
    for (const auto& [name, facts] : certified.items())
      all.push_back({name, split(embedded(fmt::format("data/nist/{}.txt", name)), " \r\n"),
                     facts.at("mean20").get<std::string>(), facts.at("sd20").get<std::string>()});
    return all;
  }();
  return sets;
}

std::vector<double> rounded_values(const CertifiedSet& set, Dtype dtype) {
  std::vector<double> values;
  for (const std::string& text : set.values) values.push_back(decimal_to(dtype, text));
  return values;
}

const std::vector<std::vector<std::string>>& public_logits() {
  static const std::vector<std::vector<std::string>> rows = [] {
    std::vector<std::vector<std::string>> all;
    for (const std::string& line : split(embedded("data/logits/lenet_mnist_logits_2500x10.csv"), "\r\n"))
      all.push_back(split(line, ", "));
    return all;
  }();
  return rows;
}

std::string_view public_cases() { return embedded("data/cases/numerics.json"); }

}  // namespace rowtune::stability
