#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "native/input_file.hpp"
#include "tools/launch/hosts/host_list.hpp"
#include "tools/launch/launch_error.hpp"
#include "tools/launch/rank_environment.hpp"

namespace ringlet::launch {

namespace {

using Json = nlohmann::ordered_json;
using Variables = std::vector<job::Variable>;

[[noreturn]] void refuse(const std::string& where, const std::string& what) { throw LaunchError(2, where + ": " + what); }

std::string text_of(const Json& value, const std::string& where, const char* key) {
  if (!value.is_string()) refuse(where, fmt::format("\"{}\" is {}; a text is expected", key, value.dump()));
  return value.get<std::string>();
}

/// Reads a list of "NAME=VALUE", as MLX writes it, or an object.
Variables variables_of(const Json& value, const std::string& where, const char* key) {
  Variables variables;
  if (value.is_object()) {
    for (const auto& [name, content] : value.items()) variables.push_back({name, text_of(content, where, key)});
  } else if (value.is_array()) {
    for (const Json& entry : value) {
      const std::string text = text_of(entry, where, key);
      auto variable = parse_variable(text);
      if (!variable) refuse(where, fmt::format("\"{}\" holds '{}'; write it as NAME=VALUE", key, text));
      variables.push_back(std::move(*variable));
    }
  } else {
    refuse(where, fmt::format("\"{}\" is {}; a list of \"NAME=VALUE\" or an object is expected", key, value.dump()));
  }
  return variables;
}

std::vector<std::string> addresses_of(const Json& value, const std::string& where) {
  std::vector<std::string> addresses;
  if (!value.is_array()) refuse(where, fmt::format("\"ips\" is {}; a list of addresses is expected", value.dump()));
  for (const Json& entry : value) addresses.push_back(text_of(entry, where, "ips"));
  return addresses;
}

Host host_of(const Json& entry, const std::string& where) {
  if (entry.is_array())
    refuse(where, "is a list of addresses, as RINGLET_HOSTFILE has them; here {\"ssh\": \"name\", \"ips\": [\"10.0.0.7\"]} is expected");
  if (!entry.is_object()) refuse(where, fmt::format("is {}; {{\"ssh\": \"name\"}} is expected", entry.dump()));
  constexpr std::int64_t kMostSlots = 1'000'000'000;  // far more than check_host() allows, which names the number
  Host host;
  for (const auto& [key, value] : entry.items()) {
    if (key == "ssh")
      host.ssh = text_of(value, where, "ssh");
    else if (key == "ips")
      host.ips = addresses_of(value, where);
    else if (key == "env")
      host.environment = variables_of(value, where, "env");
    else if (key == "cwd")
      host.directory = text_of(value, where, "cwd");
    else if (key == "slots" && value.is_number_integer())
      host.slots = static_cast<int>(std::clamp<std::int64_t>(value.get<std::int64_t>(), -kMostSlots, kMostSlots));
    else if (key == "slots")
      refuse(where, fmt::format("\"slots\" is {}; a whole number is expected", value.dump()));
    else if (key != "rdma")
      refuse(where, fmt::format("\"{}\" is not known; there are ssh, ips, slots, env, cwd, and rdma, which is passed over", key));
  }
  if (host.ssh.empty()) refuse(where, "\"ssh\" is missing: the name by which ssh reaches the machine");
  check_host(host, where);
  return host;
}

std::vector<Host> parse_json(const std::string& path, const std::string& text) {
  Json file;
  try {
    file = Json::parse(text);
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    refuse(path, "is no JSON: " + what.substr(what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2));
  }
  Variables common;
  if (file.is_object()) {
    for (const auto& [key, value] : file.items())
      if (key != "backend" && key != "envs" && key != "hosts")
        refuse(path, fmt::format("\"{}\" is not known beside \"hosts\"; there are backend, which is passed over, and envs", key));
    if (!file.contains("hosts")) refuse(path, "\"hosts\" is missing: the list of machines");
    if (file.contains("envs")) common = variables_of(file["envs"], path, "envs");
    Json hosts = std::move(file["hosts"]);
    file = std::move(hosts);
  }
  if (!file.is_array()) refuse(path, "\"hosts\" is no list; [{\"ssh\": \"name\"}] is expected");
  std::vector<Host> hosts;
  for (const Json& entry : file) {
    Host host = host_of(entry, fmt::format("{} entry {}", path, hosts.size() + 1));
    host.environment.insert(host.environment.begin(), common.begin(), common.end());
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::vector<Host> parse_lines(const std::string& path, const std::string& text) {
  std::vector<Host> hosts;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{} line {}", path, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    Host host;
    for (std::string word; words >> word;) {
      if (host.ssh.empty()) {
        host.ssh = word;
        continue;
      }
      const bool slots = word.rfind("slots=", 0) == 0 && word.size() > 6 && word.size() < 11 &&
                         word.find_first_not_of("0123456789", 6) == std::string::npos;
      if (!slots) refuse(where, fmt::format("'{}' is not understood; a host and perhaps slots=2 are expected", word));
      host.slots = std::stoi(word.substr(6));
    }
    if (host.ssh.empty()) continue;
    check_host(host, where);
    hosts.push_back(std::move(host));
  }
  return hosts;
}

}  // namespace

std::vector<Host> parse_hostfile(const std::string& path, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && (text[first] == '[' || text[first] == '{');
  std::vector<Host> hosts = json ? parse_json(path, text) : parse_lines(path, text);
  if (hosts.empty()) refuse(path, "names no host");
  if (hosts.size() > kMaxHosts) refuse(path, fmt::format("names {} hosts; there may be at most {}", hosts.size(), kMaxHosts));
  return hosts;
}

std::vector<Host> read_hostfile(const std::string& path) {
  const auto text = native::read_input_file(path);
  if (!text.ok()) refuse("--hostfile " + path, fmt::format("it cannot be read: {}; check the path", text.status().text()));
  return parse_hostfile(path, text.value());
}

}  // namespace ringlet::launch
