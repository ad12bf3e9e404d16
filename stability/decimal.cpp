#include "stability/decimal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/errors.hpp"
#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

using boost::multiprecision::cpp_int;

/// digits * 10^exponent, or a non-finite value.
struct Decimal {
  bool negative = false;
  std::string digits;  ///< without leading zeros; empty: zero
  long exponent = 0;
  std::optional<long double> special;
};

/// Further digits only say on which side of a boundary a number lies: no boundary of a long double has more than
/// 11,515.
constexpr std::size_t most_digits = 12'000;

std::optional<Decimal> parse(std::string_view text) {
  Decimal d;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    d.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "nan") d.special = std::numeric_limits<long double>::quiet_NaN();
  if (lower == "inf" || lower == "infinity") d.special = std::numeric_limits<long double>::infinity();
  if (d.special) return d;
  std::size_t at = 0;
  bool point = false, any = false, beyond = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      if (point) --d.exponent;
      if (d.digits.size() == most_digits) {
        beyond = beyond || c != '0';
        ++d.exponent;
      } else if (!(c == '0' && d.digits.empty())) {
        d.digits += c;
      }
    } else {
      break;
    }
  }
  if (!any) return std::nullopt;
  if (beyond) {
    d.digits += '1';
    --d.exponent;
  }
  if (at == text.size()) return d;
  if (text[at] != 'e' && text[at] != 'E') return std::nullopt;
  ++at;
  long sign = 1, exponent = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) sign = text[at++] == '-' ? -1 : 1;
  if (at == text.size()) return std::nullopt;
  for (; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') return std::nullopt;
    exponent = std::min(exponent * 10 + (text[at] - '0'), 100000000L);
  }
  d.exponent += sign * exponent;
  return d;
}

/// value = quotient * 2^power with quotient of at least 70 bits, its last bit sticky: rounds on as the exact value.
struct Binary {
  cpp_int quotient;
  int power;
};

Binary to_binary(const Decimal& d) {
  cpp_int numerator(d.digits), denominator = 1;
  if (d.exponent >= 0)
    numerator *= boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(d.exponent));
  else
    denominator = boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(-d.exponent));
  const int have = static_cast<int>(msb(numerator)) - static_cast<int>(msb(denominator));
  const int shift = 72 - have;
  if (shift > 0)
    numerator <<= static_cast<unsigned>(shift);
  else
    denominator <<= static_cast<unsigned>(-shift);
  cpp_int quotient, remainder;
  divide_qr(numerator, denominator, quotient, remainder);
  if (remainder != 0) quotient |= 1;
  return {quotient, -shift};
}

/// Rounds to `digits` significant bits, fewer below 2^least_exponent, half to even.
long double round_binary(const Binary& b, int digits, int least_exponent) {
  const int top = static_cast<int>(msb(b.quotient)) + b.power;
  const int grid = std::max(top, least_exponent) - digits + 1;
  const int drop = grid - b.power;
  if (drop > static_cast<int>(msb(b.quotient)) + 2) return 0;
  cpp_int kept = b.quotient;
  if (drop > 0) {
    kept >>= static_cast<unsigned>(drop);
    const cpp_int rest = b.quotient - (kept << static_cast<unsigned>(drop));
    const cpp_int half = cpp_int(1) << static_cast<unsigned>(drop - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  const auto significand = kept.convert_to<long double>();
  return std::scalbn(significand, drop > 0 ? grid : b.power);
}

long double convert(std::string_view text, int digits, int least_exponent) {
  const std::optional<Decimal> d = parse(text);
  if (!d) throw UsageError(fmt::format("'{}' is not a number; write decimal numbers, inf, -inf or nan", text));
  const long double sign = d->negative ? -1 : 1;
  if (d->special) return sign * *d->special;
  if (d->digits.empty()) return sign * 0.0L;
  const long leading = static_cast<long>(d->digits.size()) + d->exponent;  // value < 10^leading
  if (leading > 5000) return sign * std::numeric_limits<long double>::infinity();
  if (leading < -5000) return sign * 0.0L;
  return sign * round_binary(to_binary(*d), digits, least_exponent);
}

}  // namespace

double decimal_to(Dtype dtype, std::string_view text) {
  // The library rounds f64 and f32 correctly, and fast; it refuses what overflows, underflows or begins with a plus.
  const char* const end = text.data() + text.size();
  if (double value = 0; dtype == Dtype::f64) {
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end) return value;
  }
  if (float value = 0; dtype == Dtype::f32) {
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end) return static_cast<double>(value);
  }
  const Format& f = format_of(dtype);
  // The second rounding only turns what lies beyond the largest number into infinity.
  return round_to(dtype, convert(text, f.digits, f.least_exponent));
}

long double decimal_to_long_double(std::string_view text) {
  return convert(text, std::numeric_limits<long double>::digits, std::numeric_limits<long double>::min_exponent - 1);
}

long double rounding_of_decimal(std::string_view text) {
  const std::optional<Decimal> d = parse(text);
  if (!d || d->special || d->digits.size() < 12) return 0;
  return decimal_to_long_double(fmt::format("5e{}", d->exponent - 1));
}

bool is_decimal(std::string_view text) { return parse(text).has_value(); }

}  // namespace rowtune::stability
