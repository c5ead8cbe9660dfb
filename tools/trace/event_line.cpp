#include "tools/trace/event_line.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace ringlet::trace {

namespace {

constexpr int kMaxDepth = 8, kMaxNumberLetters = 40;

/// Steps through JSON text. Each function returns whether its kind of thing stood there, and has passed it then.
class JsonSteps {
 public:
  explicit JsonSteps(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  const char* at() const { return at_; }
  bool is_at_end() const { return at_ == end_; }
  bool take(char letter) {
    if (at_ == end_ || *at_ != letter) return false;
    ++at_;
    return true;
  }
  bool take_string() {
    if (!take('"')) return false;
    for (; at_ != end_ && *at_ != '"'; ++at_) {
      if (*at_ < ' ' || *at_ > '~') return false;
      if (*at_ != '\\') continue;
      if (++at_ == end_ || std::string_view("\"\\/bfnrt").find(*at_) == std::string_view::npos) return false;
    }
    return take('"');
  }
  bool take_number() {
    const char* const first = at_;
    take('-');
    if (!take('0') && !take_digits()) return false;
    if (take('.') && !take_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      const char* const exponent = at_;
      if (!take_digits() || at_ - exponent > 2) return false;
    }
    // Parsers refuse numbers that are too large.
    return at_ - first <= kMaxNumberLetters;
  }
  bool take_value(int depth) {
    if (depth > kMaxDepth || at_ == end_) return false;
    if (*at_ == '"') return take_string();
    if (*at_ == '{') return take_object(depth, [](std::string_view, std::string_view) { return true; });
    if (*at_ == '[') return take_list(depth);
    for (const std::string_view word : {"true", "false", "null"})
      if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) {
        at_ += word.size();
        return true;
      }
    return take_number();
  }
  /// `take_member` gets the text of each key, without its quotes, and of its value, and says whether that is in order.
  template <class TakeMember>
  bool take_object(int depth, TakeMember take_member) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      const char* const key = at_ + 1;
      if (!take_string()) return false;
      const std::string_view key_text(key, static_cast<std::size_t>(at_ - 1 - key));
      if (!take(':')) return false;
      const char* const value = at_;
      if (!take_value(depth + 1) || !take_member(key_text, std::string_view(value, static_cast<std::size_t>(at_ - value)))) return false;
    } while (take(','));
    return take('}');
  }

 private:
  bool take_digits() {
    const char* const first = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != first;
  }
  bool take_list(int depth) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do
      if (!take_value(depth + 1)) return false;
    while (take(','));
    return take(']');
  }

  const char* at_;
  const char* const end_;
};

/// Takes over a value that has not been there yet.
bool set_once(std::string_view& value, std::string_view text) {
  if (!value.empty()) return false;
  value = text;
  return true;
}

}  // namespace

std::optional<EventLine> EventLine::find(std::string_view line) {
  EventLine found;
  std::string_view phase, duration, id, arguments = "{}";
  JsonSteps steps(line);
  const bool is_plain = steps.take_object(0, [&](std::string_view key, std::string_view value) {
    if (key == "name") return set_once(found.name, value);
    if (key == "pid") return set_once(found.pid, value);
    if (key == "ts") return set_once(found.ts, value);
    if (key == "ph") return set_once(phase, value);
    if (key == "dur") return set_once(duration, value);
    if (key == "id2") return set_once(id, value);
    if (key == "args") arguments = value;
    return true;
  });
  if (!is_plain || !steps.is_at_end() || found.name.size() < 2 || found.name.front() != '"' || arguments.front() != '{')
    return std::nullopt;
  const bool is_span = phase == R"("X")" && nanoseconds_in(duration).value_or(-1) >= 0;
  const bool is_half = (phase == R"("b")" || phase == R"("e")") && id.starts_with('{');
  const auto at = nanoseconds_in(found.ts);
  std::int32_t process = 0;
  const auto [stop, error] = std::from_chars(found.pid.data(), found.pid.data() + found.pid.size(), process);
  if ((!is_span && !is_half) || !at || error != std::errc() || stop != found.pid.data() + found.pid.size() || process < 0)
    return std::nullopt;
  found.name = found.name.substr(1, found.name.size() - 2);
  found.process = process;
  found.at_ns = *at;
  return found;
}

std::optional<std::int64_t> nanoseconds_in(std::string_view microseconds) {
  // More digits would not fit.
  constexpr std::size_t kMostDigits = 15;
  const bool is_negative = microseconds.starts_with('-');
  if (is_negative) microseconds.remove_prefix(1);
  const std::size_t dot = std::min(microseconds.find('.'), microseconds.size());
  std::string_view whole = microseconds.substr(0, dot), decimals = microseconds.substr(dot);
  if (!decimals.empty()) decimals.remove_prefix(1);
  if (whole.empty() || whole.size() > kMostDigits || decimals.size() > 3 || (dot < microseconds.size() && decimals.empty()))
    return std::nullopt;
  std::int64_t nanoseconds = 0;
  for (const std::string_view digits : {whole, decimals})
    for (const char digit : digits) {
      if (digit < '0' || digit > '9') return std::nullopt;
      nanoseconds = nanoseconds * 10 + (digit - '0');
    }
  for (std::size_t i = decimals.size(); i < 3; ++i) nanoseconds *= 10;
  return is_negative ? -nanoseconds : nanoseconds;
}

}  // namespace ringlet::trace
