#include "tools/launch/hosts/messages.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/launch/hosts/host_list.hpp"
#include "tools/launch/launch_error.hpp"

namespace ringlet::launch {

namespace {

using Json = nlohmann::json;
constexpr std::size_t kOutputHead = 5;  // rank and stream
constexpr std::size_t kMaxNoise = 256 * 1024;
/// Of bodies that are parsed, but for a job's, which holds whatever is on the user's command line.
constexpr std::size_t kMaxParsedBytes = 64 * 1024;
constexpr int kMaxColumns = 65535;
constexpr int kMaxSignals = 64;
constexpr std::int64_t kMaxGraceMs = 1'000'000'000;
constexpr int kAnyNumber = std::numeric_limits<int>::max();

/// The parser goes down the stack with every level of nesting; no message of ours has more than these.
class NestingCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kMaxLevels; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ <= kMaxLevels; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  static constexpr int kMaxLevels = 3;
  int depth_ = 0;
};

std::string encode_json(MessageKind kind, const Json& body) {
  std::string bytes;
  Json::to_msgpack(body, bytes);
  return encode(kind, bytes);
}

[[noreturn]] void refuse() {
  throw LaunchError(1, "the launcher's and the host's `ringlet` do not understand each other; install the same version on both");
}

/// Whatever is wrong in a body that `read` makes something of ends in the same refusal.
template <class Read>
auto parse(std::string_view body, Read read, std::size_t most_bytes = kMaxParsedBytes) {
  NestingCheck nesting;
  if (body.size() > most_bytes || !Json::sax_parse(body.begin(), body.end(), &nesting, Json::input_format_t::msgpack)) refuse();
  try {
    return read(Json::from_msgpack(body.begin(), body.end()));
  } catch (const Json::exception&) {
    refuse();
  }
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
std::optional<T> optional_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

std::int64_t number_in(const Json& value, std::int64_t least, std::int64_t most) {
  const std::int64_t number = value.is_number_integer() ? value.get<std::int64_t>() : least - 1;
  if (number < least || number > most) refuse();
  return number;
}

int number_at(const Json& json, const char* key, int least, int most) { return static_cast<int>(number_in(json.at(key), least, most)); }

std::optional<int> optional_number_at(const Json& json, const char* key, int least, int most) {
  return json.at(key).is_null() ? std::nullopt : std::optional<int>(number_at(json, key, least, most));
}

std::chrono::milliseconds grace_of(const Json& json) { return std::chrono::milliseconds(number_in(json.at("grace_ms"), 0, kMaxGraceMs)); }

std::uint32_t raw_number(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return number;
}

std::string number_bytes(std::uint32_t number) {
  std::string bytes;
  for (std::size_t i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

std::string encode(MessageKind kind, std::string_view body) {
  std::string message = number_bytes(static_cast<std::uint32_t>(body.size() + 1));
  message += static_cast<char>(kind);
  return message.append(body);
}

std::string encode(const Hello& hello) {
  return std::string(kGreeting) +
         encode_json(MessageKind::hello, {{"protocol", hello.protocol}, {"launcher", hello.launcher_address}, {"own", hello.own_address}});
}

std::string encode(const Job& job) {
  const LaunchOptions& options = job.options;
  return encode_json(MessageKind::job, {{"world", options.world_size},
                                        {"first", options.first_rank},
                                        {"here", options.ranks_here.value_or(options.world_size)},
                                        {"command", options.command},
                                        {"environment", options.environment},
                                        {"directory", or_null(options.working_directory)},
                                        {"preferred", job.preferred_directory},
                                        {"stdin", or_null(options.stdin_rank)},
                                        {"columns", or_null(options.terminal_columns)},
                                        {"grace_ms", options.grace.count()},
                                        {"listen", job.listen_at ? Json(job.listen_at->host) : Json(nullptr)},
                                        {"port", job.listen_at ? job.listen_at->port : 0}});
}

std::string encode(const Refusal& refusal) {
  return encode_json(MessageKind::refused, {{"code", refusal.exit_code}, {"text", refusal.text}});
}

std::string encode(const ExitNote& note) {
  return encode_json(MessageKind::exit, {{"rank", note.exit.rank},
                                         {"pid", note.exit.pid},
                                         {"code", or_null(note.exit.code)},
                                         {"signal", or_null(note.exit.signal)},
                                         {"stopped", note.exit.stopped},
                                         {"exec_error", or_null(note.exec_error)}});
}

std::string encode(const OutputPart& part) {
  std::string body = number_bytes(static_cast<std::uint32_t>(part.rank));
  body += part.error ? '\1' : '\0';
  return encode(MessageKind::output, body.append(part.bytes));
}

std::string encode(const StopOrder& order) {
  return encode_json(MessageKind::stop, {{"signal", order.signal_number}, {"grace_ms", order.grace.count()}});
}

std::string encode_number(MessageKind kind, int number) { return encode_json(kind, number); }

Hello parse_hello(std::string_view body) {
  return parse(body, [](const Json& json) {
    return Hello{number_at(json, "protocol", 0, kAnyNumber), json.at("launcher").get<std::string>(), json.at("own").get<std::string>()};
  });
}

Job parse_job(std::string_view body) {
  const auto read = [](const Json& json) {
    Job job;
    LaunchOptions& options = job.options;
    options.world_size = number_at(json, "world", 1, kMaxWorldSize);
    options.ranks_here = number_at(json, "here", 1, std::min(kMaxRanks, options.world_size));
    options.first_rank = number_at(json, "first", 0, options.world_size - *options.ranks_here);
    options.command = json.at("command").get<std::vector<std::string>>();
    options.environment = json.at("environment").get<std::vector<std::pair<std::string, std::string>>>();
    options.working_directory = optional_at<std::string>(json, "directory");
    options.stdin_rank = optional_number_at(json, "stdin", 0, options.world_size - 1);
    options.terminal_columns = optional_number_at(json, "columns", 0, kMaxColumns);
    options.grace = grace_of(json);
    options.prefix = false;
    job.preferred_directory = json.at("preferred").get<std::string>();
    if (const auto host = optional_at<std::string>(json, "listen")) job.listen_at = ListenAt{*host, number_at(json, "port", 0, kMaxPort)};
    return job;
  };
  return parse(body, read, kMaxMessageBytes);
}

Refusal parse_refusal(std::string_view body) {
  return parse(body, [](const Json& json) { return Refusal{number_at(json, "code", 1, 255), json.at("text").get<std::string>()}; });
}

ExitNote parse_exit(std::string_view body) {
  return parse(body, [](const Json& json) {
    ExitNote note;
    note.exit.rank = number_at(json, "rank", 0, kMaxWorldSize - 1);
    note.exit.pid = number_at(json, "pid", 1, kAnyNumber);
    note.exit.code = optional_number_at(json, "code", 0, 255);
    note.exit.signal = optional_number_at(json, "signal", 1, kMaxSignals);
    note.exit.stopped = json.at("stopped").get<bool>();
    note.exec_error = optional_number_at(json, "exec_error", 1, kAnyNumber);
    if (!note.exit.code && !note.exit.signal) refuse();
    return note;
  });
}

OutputPart parse_output(std::string_view body) {
  if (body.size() < kOutputHead) refuse();
  return {static_cast<int>(raw_number(body)), body[4] != 0, body.substr(kOutputHead)};
}

StopOrder parse_stop(std::string_view body) {
  return parse(body, [](const Json& json) { return StopOrder{number_at(json, "signal", 1, kMaxSignals), grace_of(json)}; });
}

int parse_number(std::string_view body, int most) {
  return parse(body, [most](const Json& json) { return static_cast<int>(number_in(json, 0, most)); });
}

void MessageReader::feed(std::string_view bytes, const OnMessage& on_message) {
  if (broken_) return;
  try {
    take(bytes, on_message);
  } catch (const LaunchError&) {
    broken_ = true;
    throw;
  }
}

void MessageReader::take(std::string_view bytes, const OnMessage& on_message) {
  buffer_.append(bytes);
  if (waits_for_greeting_) {
    const std::size_t greeting = buffer_.find(kGreeting);
    if (greeting == std::string::npos) {
      if (buffer_.size() > kMaxNoise)
        throw LaunchError(1, "its login prints without end; nothing there may write to stdout before the command");
      return;
    }
    buffer_.erase(0, greeting + kGreeting.size());
    waits_for_greeting_ = false;
  }
  std::string_view rest = buffer_;
  while (rest.size() >= kMessageHead) {
    const std::size_t size = raw_number(rest);
    if (size < 1 || size > kMaxMessageBytes) refuse();
    if (rest.size() < 4 + size) break;
    on_message(static_cast<MessageKind>(rest[4]), rest.substr(kMessageHead, size - 1));
    rest.remove_prefix(4 + size);
  }
  buffer_.erase(0, buffer_.size() - rest.size());
}

}  // namespace ringlet::launch
