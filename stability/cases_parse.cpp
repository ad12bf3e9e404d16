#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kernels/errors.hpp"
#include "stability/cases.hpp"
#include "stability/decimal.hpp"
#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

using nlohmann::json;

/// How much a file may still spell out: a few bytes of JSON can ask for any number of elements.
struct Room {
  std::size_t inputs = std::size_t{1} << 26;
  std::size_t outputs = std::size_t{1} << 24;
};

/// A number as text: a string, or a JSON number as it was written for people who leave the quotes out.
std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  throw UsageError(fmt::format("{} is not a number in quotes", value.dump()));
}

/// [[value, count]...] spelled out; `room` is what is left for it.
template <class Convert>
auto expand(const json& list, std::size_t room, Convert convert) {
  std::vector<decltype(convert(std::string()))> values;
  if (!list.is_array()) throw UsageError("it must be a list of [value, count]");
  for (const json& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_unsigned())
      throw UsageError(fmt::format("{} is not [value, count]", pair.dump()));
    const std::size_t count = pair[1].get<std::size_t>();
    if (count > room - values.size()) throw UsageError(fmt::format("more elements than the {} left", room));
    values.insert(values.end(), count, convert(text_of(pair[0])));
  }
  return values;
}

/// Appends the values again until there are `total`, a multiple of their number.
template <class T>
void repeat_until(std::vector<T>& values, std::size_t total) {
  const std::size_t once = values.size();
  values.reserve(total);
  while (values.size() < total) values.push_back(values[values.size() - once]);
}

Expected expected_of(const std::string& text) { return {decimal_to_long_double(text), rounding_of_decimal(text)}; }

/// Calls f on a field; an error gets the field's name.
template <class F>
auto field(const json& object, const char* name, F f) {
  const auto found = object.find(name);
  if (found == object.end()) throw UsageError(fmt::format("'{}' is missing", name));
  try {
    return f(*found);
  } catch (const std::exception& e) {
    throw UsageError(fmt::format("'{}': {}", name, e.what()));
  }
}

KnownCase parse_case(const json& object, Room& room) {
  const auto as_string = [](const json& v) { return v.get<std::string>(); };
  KnownCase known;
  known.op = field(object, "op", as_string);
  if (known.op != "variance" && known.op != "softmax" && known.op != "log_softmax" && known.op != "layernorm" &&
      known.op != "rmsnorm")
    throw UsageError(
        fmt::format("unknown op '{}'; valid: variance, softmax, log_softmax, layernorm, rmsnorm", known.op));
  known.dtype = field(object, "dtype", [&](const json& v) { return parse_study_dtype(as_string(v)); });
  std::size_t repeat = 1;
  if (object.contains("repeat"))
    repeat = field(object, "repeat", [](const json& v) {
      if (!v.is_number_unsigned() || v.get<std::size_t>() < 1) throw UsageError("must be a whole number of at least 1");
      return v.get<std::size_t>();
    });
  const auto to_dtype = [&](const std::string& text) { return decimal_to(known.dtype, text); };
  known.input = field(object, "input", [&](const json& v) { return expand(v, room.inputs, to_dtype); });
  if (known.input.empty()) throw UsageError("'input' is empty");
  if (repeat > room.inputs / known.input.size())
    throw UsageError(fmt::format("'repeat': more elements than the {} left", room.inputs));
  repeat_until(known.input, repeat * known.input.size());
  room.inputs -= known.input.size();
  if (object.contains("eps"))
    known.eps = field(object, "eps", [](const json& v) { return decimal_to_long_double(text_of(v)); });
  if (object.contains("tol"))
    known.tol =
        static_cast<double>(field(object, "tol", [](const json& v) { return decimal_to_long_double(text_of(v)); }));
  return field(object, "expect", [&](const json& expect) {
    if (!expect.is_object() || expect.empty()) throw UsageError("it must name what is expected");
    for (const auto& [name, value] : expect.items()) {
      if (name == "output") {
        known.output = expand(value, room.outputs, expected_of);
        const std::size_t once = known.output.size();
        if (once == 0 || known.input.size() % once != 0)
          throw UsageError(fmt::format("'output' has {} values and the input {}", once, known.input.size()));
        if (known.input.size() > room.outputs)
          throw UsageError(fmt::format("'output': more elements than the {} left", room.outputs));
        repeat_until(known.output, known.input.size());  // a pattern may be spelled once for a repeated input
        room.outputs -= known.output.size();
      } else if (name == "mean" || name == "var_pop" || name == "var_sample" || name == "logsumexp") {
        known.expected[name] = expected_of(text_of(value));
      } else {
        throw UsageError(
            fmt::format("unknown quantity '{}'; valid: mean, var_pop, var_sample, logsumexp, output", name));
      }
    }
    return known;
  });
}

}  // namespace

std::vector<KnownCase> parse_cases(std::string_view text, const std::string& source) {
  json list;
  try {
    list = json::parse(text, [](int depth, json::parse_event_t, const json&) {
      if (depth > 16) throw UsageError("nested deeper than any list of cases");
      return true;
    });
  } catch (const UsageError& e) {
    throw EnvironmentError(fmt::format("{}: {}", source, e.what()));
  } catch (const json::exception& e) {
    throw EnvironmentError(fmt::format("{}: not JSON: {}", source, e.what()));
  }
  if (!list.is_array())
    throw EnvironmentError(fmt::format("{}: the file must hold a JSON list of cases [{{...}}, ...]", source));
  std::vector<KnownCase> cases;
  Room room;
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string id = fmt::format("number {}", i + 1);
    try {
      if (!list[i].is_object()) throw UsageError("it must be an object {...}");
      id = field(list[i], "id", [](const json& v) { return v.get<std::string>(); });
      cases.push_back(parse_case(list[i], room));
      cases.back().id = id;
    } catch (const std::exception& e) {
      throw EnvironmentError(fmt::format("{}: case {}: {}", source, id, e.what()));
    }
  }
  return cases;
}

std::vector<KnownCase> read_cases(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw EnvironmentError(fmt::format("cannot read the cases file '{}': give the path of a JSON file", path));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw EnvironmentError(fmt::format("reading the cases file '{}' failed", path));
  return parse_cases(text, path);
}

}  // namespace rowtune::stability
