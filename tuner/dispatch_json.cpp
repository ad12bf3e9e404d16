// Dispatch tables as JSON: deterministic out, strict in.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "tuner/dispatch_table.hpp"

namespace rowtune {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* schema_name = "rowtune-dispatch";
constexpr int schema_version = 2;

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json json_of(const DispatchEntry& entry) {
  const auto& e = entry.evidence;
  return {{"rows", entry.rows},
          {"cols", entry.cols},
          {"alignment", entry.alignment},
          {"kernel", entry.kernel},
          {"config", entry.config},
          {"evidence",
           {{"time_us", e.time_us},
            {"time_lo_us", number(e.time_lo_us)},
            {"time_hi_us", number(e.time_hi_us)},
            {"ceiling_fraction", number(e.ceiling_fraction)},
            {"base_config", e.base_config},
            {"base_time_us", number(e.base_time_us)},
            {"gain_over_base", number(e.gain_over_base)},
            {"ties", e.ties},
            {"best_config", e.best_config},
            {"regret", number(e.regret)},
            {"max_error_ulp", number(e.max_error_ulp)},
            {"decided", e.decided},
            {"toolchain", e.toolchain},
            {"source_fingerprint", e.source_fingerprint},
            {"protocol", e.protocol}}}};
}

Json json_of(const DispatchKernel& kernel) {
  return {{"config", kernel.config}, {"vectors", kernel.vectors}, {"ragged", kernel.ragged}};
}

Json json_of(const DispatchRegion& region) {
  return {{"cols", region.cols}, {"rows", region.rows}, {"kernel", region.kernel}};
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// One element a line, so that a difference between two files is a line each.
template <class T>
std::string list_of(const char* name, const std::vector<T>& all) {
  std::string text = fmt::format("      \"{}\": [", name);
  for (std::size_t i = 0; i < all.size(); ++i)
    text += fmt::format("{}\n        {}", i == 0 ? "" : ",", dump(json_of(all[i])));
  return text + (all.empty() ? "]" : "\n      ]");
}

/// A value in the document that knows where it is, so that every complaint names the place.
class Node {
 public:
  Node(const Json& json, std::string where, const std::string& source)
      : json_(json), where_(std::move(where)), source_(source) {}

  Node operator[](const char* key) const {
    if (!json_.is_object()) fail("an object");
    const auto found = json_.find(key);
    const auto place = where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
    if (found == json_.end()) complain(source_, fmt::format("'{}' is missing", place));
    return {*found, place, source_};
  }
  std::vector<Node> list() const {
    if (!json_.is_array()) fail("a list");
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < json_.size(); ++i)
      nodes.emplace_back(json_[i], fmt::format("{}[{}]", where_, i), source_);
    return nodes;
  }
  std::string text() const {
    if (!json_.is_string()) fail("a text");
    return json_.get<std::string>();
  }
  std::int64_t whole(std::int64_t low, std::int64_t high) const {
    const bool fits =
        json_.is_number_integer() && (!json_.is_number_unsigned() || json_.get<std::uint64_t>() <= INT64_MAX);
    if (!fits || json_.get<std::int64_t>() < low || json_.get<std::int64_t>() > high)
      fail(fmt::format("a whole number from {} to {}", low, high));
    return json_.get<std::int64_t>();
  }
  double real() const {
    if (!json_.is_number()) fail("a number");
    return json_.get<double>();
  }
  std::optional<double> maybe_real() const { return json_.is_null() ? std::nullopt : std::optional(real()); }
  bool flag() const {
    if (!json_.is_boolean()) fail("true or false");
    return json_.get<bool>();
  }
  /// A word of rowtune, such as an operation.
  template <class Parse>
  auto word(Parse parse) const {
    const auto spelled = text();
    try {
      return parse(spelled);
    } catch (const UsageError& error) {
      complain(source_, fmt::format("'{}': {}", where_, error.what()));
    }
  }
  [[noreturn]] void fail(const std::string& expected) const {
    auto found = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (found.size() > 60) found = found.substr(0, 57) + "...";
    complain(source_,
             fmt::format("'{}' should be {}, and is {}", where_.empty() ? "the whole" : where_, expected, found));
  }
  [[noreturn]] static void complain(const std::string& source, const std::string& what) {
    throw EnvironmentError(
        fmt::format("dispatch table '{}': {}; make it anew with `rowtune dispatch --out DIR`", source, what));
  }

 private:
  const Json& json_;
  std::string where_;
  const std::string& source_;
};

constexpr std::int64_t extent = 2147483647;
constexpr int most_kernels = 32767;

DispatchEntry read_entry(const Node& node, int kernels) {
  DispatchEntry entry;
  entry.rows = node["rows"].whole(0, extent);
  entry.cols = node["cols"].whole(0, extent);
  entry.alignment = static_cast<int>(node["alignment"].whole(1, 16));
  entry.kernel = static_cast<int>(node["kernel"].whole(-1, kernels - 1));
  entry.config = node["config"].text();
  const auto evidence = node["evidence"];
  auto& e = entry.evidence;
  e.time_us = evidence["time_us"].real();
  e.time_lo_us = evidence["time_lo_us"].maybe_real();
  e.time_hi_us = evidence["time_hi_us"].maybe_real();
  e.ceiling_fraction = evidence["ceiling_fraction"].maybe_real();
  e.base_config = evidence["base_config"].text();
  e.base_time_us = evidence["base_time_us"].maybe_real();
  e.gain_over_base = evidence["gain_over_base"].maybe_real();
  e.ties = static_cast<int>(evidence["ties"].whole(0, 1'000'000'000));
  e.best_config = evidence["best_config"].text();
  e.regret = evidence["regret"].maybe_real();
  e.max_error_ulp = evidence["max_error_ulp"].maybe_real();
  e.decided = evidence["decided"].flag();
  e.toolchain = evidence["toolchain"].text();
  e.source_fingerprint = evidence["source_fingerprint"].text();
  e.protocol = static_cast<int>(evidence["protocol"].whole(0, 1'000'000'000));
  return entry;
}

std::vector<DispatchRegion> read_regions(const Node& node, int kernels) {
  std::vector<DispatchRegion> regions;
  for (const auto& region : node.list()) {
    regions.push_back({region["cols"].whole(0, extent), region["rows"].whole(0, extent),
                       static_cast<int>(region["kernel"].whole(-1, kernels - 1))});
    const auto order = [](const DispatchRegion& r) { return std::pair(r.cols, r.rows); };
    if (regions.size() > 1 && !(order(regions[regions.size() - 2]) < order(regions.back())))
      region.fail("a region beyond the one before it");
  }
  return regions;
}

DispatchTable read_table(const Node& node) {
  DispatchTable table;
  table.device_model = node["device_model"].text();
  table.device_limits = node["device_limits"].text();
  table.op = node["op"].word(parse_operation);
  table.dtype = node["dtype"].word(parse_dtype);
  table.regime = node["regime"].word(parse_regime);
  table.options = node["options"].word(parse_options);
  for (const auto& kernel : node["kernels"].list())
    table.kernels.push_back(
        {kernel["config"].text(), static_cast<int>(kernel["vectors"].whole(0, extent)), kernel["ragged"].flag()});
  const int kernels = static_cast<int>(std::min<std::size_t>(table.kernels.size(), most_kernels));
  for (const auto& entry : node["entries"].list()) {
    table.entries.push_back(read_entry(entry, kernels));
    const auto order = [](const DispatchEntry& e) { return std::tuple(e.cols, e.rows, e.alignment); };
    if (table.entries.size() > 1 && !(order(table.entries[table.entries.size() - 2]) < order(table.entries.back())))
      entry.fail("an entry beyond the one before it");
  }
  table.least_cols = node["least_cols"].whole(0, extent);
  table.least_rows = node["least_rows"].whole(0, extent);
  table.aligned = read_regions(node["aligned"], kernels);
  table.ragged = read_regions(node["ragged"], kernels);
  return table;
}

[[noreturn]] void fail_io(const std::string& path, const char* doing) {
  throw EnvironmentError(fmt::format("dispatch table '{}': {}: {}", path, doing, std::strerror(errno)));
}

/// Closed, and removed unless it got its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : target_(target.string()), name_(fmt::format("{}.{}.tmp", target_, getpid())) {
    descriptor_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail_io(name_, "cannot be created");
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!renamed_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write_all(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
      const auto n = write(descriptor_, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_io(name_, "cannot be written");
      done += static_cast<std::size_t>(n);
    }
    if (fsync(descriptor_) != 0) fail_io(name_, "cannot be written");
  }
  void take_its_place() {
    if (std::rename(name_.c_str(), target_.c_str()) != 0) fail_io(target_, "cannot be replaced");
    renamed_ = true;
  }

 private:
  std::string target_, name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

std::string to_json(const DispatchTables& all) {
  std::string text =
      fmt::format("{{\n  \"schema\": \"{}\",\n  \"version\": {},\n  \"tables\": [", schema_name, schema_version);
  for (std::size_t i = 0; i < all.tables.size(); ++i) {
    const auto& t = all.tables[i];
    const Json head = {{"device_model", t.device_model}, {"device_limits", t.device_limits},
                       {"op", to_string(t.op)},          {"dtype", to_string(t.dtype)},
                       {"regime", to_string(t.regime)},  {"options", to_string(t.options)},
                       {"least_cols", t.least_cols},     {"least_rows", t.least_rows}};
    text += fmt::format("{}\n    {{", i == 0 ? "" : ",");
    for (const auto& [key, value] : head.items()) text += fmt::format("\n      \"{}\": {},", key, dump(value));
    text += fmt::format("\n{},\n{},\n{},\n{}\n    }}", list_of("kernels", t.kernels), list_of("entries", t.entries),
                        list_of("aligned", t.aligned), list_of("ragged", t.ragged));
  }
  return text + (all.tables.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

DispatchTables parse_dispatch(const std::string& json, const std::string& source) {
  Json document;
  try {
    document = Json::parse(json, [&](int depth, Json::parse_event_t, const Json&) {
      if (depth > 16) Node::complain(source, "it is nested deeper than any dispatch table");
      return true;
    });
  } catch (const Json::parse_error& error) {
    Node::complain(source, fmt::format("not JSON, or cut short, at byte {} of {}", error.byte, json.size()));
  } catch (const Json::exception&) {  // such as 1e999
    Node::complain(source, "it holds a number that no double can hold");
  }
  const Node root(document, "", source);
  const auto name = root["schema"].text();
  if (name != schema_name) Node::complain(source, fmt::format("schema is '{}', not '{}'", name, schema_name));
  const auto version = root["version"].whole(1, 1'000'000'000);
  if (version != schema_version)
    Node::complain(source,
                   fmt::format("version {} is not the version {} that this rowtune reads", version, schema_version));
  DispatchTables tables;
  for (const auto& table : root["tables"].list()) tables.tables.push_back(read_table(table));
  return tables;
}

std::vector<std::string> write_dispatch(const DispatchTables& tables, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw EnvironmentError(
        fmt::format("folder '{}' cannot be made: {}; name another one with --out", folder, failed.message()));
  std::vector<std::pair<const char*, std::string>> files{{"dispatch.json", to_json(tables)}};
  if (std::any_of(tables.tables.begin(), tables.tables.end(), [](const auto& t) { return is_cuda(t.device_limits); }))
    files.emplace_back("rowtune_dispatch.cuh", to_header(tables));
  std::vector<std::string> paths;
  for (const auto& [name, text] : files) {
    const auto path = std::filesystem::path(folder) / name;
    TemporaryFile file(path);
    file.write_all(text);
    file.take_its_place();
    paths.push_back(path.string());
  }
  return paths;
}

DispatchTables read_dispatch(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_io(path, "cannot be opened");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) fail_io(path, "cannot be read");
  return parse_dispatch(text, path);
}

}  // namespace rowtune
