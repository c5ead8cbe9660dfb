#include "native/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/hash.hpp"
#include "native/hostfile.hpp"
#include "native/reachability.hpp"
#include "native/this_process.hpp"
#include "native/token.hpp"

namespace ringlet::native {

namespace {

constexpr Duration kPatienceWithGuests = Duration::seconds(600);
constexpr Duration kElasticHeartbeatTimeout = Duration::seconds(4);
constexpr std::int64_t kLeastPartsWindowMs = 2 * PartsWatchOptions{}.stretch_busy.whole_milliseconds();

/// Only has to distinguish hostfiles that differ by mistake.
std::uint64_t world_id_of(const std::vector<std::vector<Address>>& roster) {
  std::string text;
  for (const auto& addresses : roster) {
    for (const auto& address : addresses) text += to_string(address) + ",";
    text += ";";
  }
  return hash_of(text);
}

void check_backend(const std::string& backend) {
  if (!is_available(backend)) refuse(fmt::format("there is no backend '{}'; use \"any\" or \"tcp\"", backend));
}

const simd::Kernels* choose_kernels(const Variables& variables) {
  const auto pinned = first_set(variables, {"RINGLET_SIMD"});
  if (const auto* kernels = simd::find(pinned ? pinned->value : "")) return kernels;
  std::string names;
  for (const auto* target : simd::available()) names += fmt::format("{}{}", names.empty() ? "" : ", ", target->name());
  refuse(fmt::format("RINGLET_SIMD is '{}', which this CPU does not have; it has {}", pinned->value, names));
}

/// Without a token anyone on the network could join, so only addresses of this machine are allowed, unless RINGLET_INSECURE is 1.
void check_exposure(const Address& address, const Variables& variables, const WorldConfig& config) {
  if (is_loopback(address) || !config.token.empty()) return;
  const auto forced = first_set(variables, {"RINGLET_INSECURE"});
  if (forced && forced->value == "1") return;
  refuse(
      fmt::format("{} can be reached from other machines, and there is no token to check who joins; make one with `ringlet token` and give "
                  "it to all ranks (RINGLET_TOKEN, RINGLET_TOKEN_FILE), or use 127.0.0.1; where you trust every machine on the network, "
                  "RINGLET_INSECURE=1 does without",
                  to_string(address)));
}

struct Settings {
  std::optional<Setting> rank, world_size, coordinator, hostfile, guests, join, door;
  ReachSettings reach;
};

/// The number of guests in a world of `size` ranks. Rank 0 cannot be a guest.
int guests_of(const Settings& settings, std::int64_t size) {
  return settings.guests ? static_cast<int>(parse_integer(*settings.guests, 0, size - 1)) : 0;
}

/// What this machine and rank 0's are called.
std::vector<std::string> page_hosts(const Address* rank0) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (!name.empty()) names.push_back(std::move(name));
  };
  add(machine_name());
  if (!names.empty()) add(names.front() + ".local");
  if (rank0 != nullptr) add(rank0->host);
  return names;
}

void use_web_settings(const Variables& variables, WorldConfig& config) {
  if (config.options.guests == 0 && !config.options.elastic) return;
  if (const auto origins = first_set(variables, {"RINGLET_ORIGINS"})) config.web.allowed_origins = split_list(origins->value);
  const auto& roster = config.meeting.roster;
  const auto* rank0 = config.meeting.coordinator ? &*config.meeting.coordinator : roster.empty() ? nullptr : &roster.front().front();
  if (config.token.empty()) config.web.page_hosts = page_hosts(rank0);
  if (config.options.rank != 0 && !config.options.elastic) {
    if (rank0 != nullptr) config.web.page_port = rank0->port;
    return;
  }
  const auto descriptor = [&](std::string_view name) -> std::optional<int> {
    const auto setting = first_set(variables, {name});
    return setting ? std::optional(static_cast<int>(parse_integer(*setting, 3, 1 << 20))) : std::nullopt;
  };
  config.given.page = descriptor("RINGLET_PAGE_FD");
  if (const auto presence = first_set(variables, {"RINGLET_PRESENCE_FD"})) config.given.presence = parse_descriptor(*presence);
  if (!config.options.elastic) return;
  // Guests come by the door, and the group begins without them.
  config.door_options.web = config.web;
  config.given.page_socket = descriptor("RINGLET_PAGE_SOCKET_FD");
  config.first_guests = config.options.guests;
  config.options.size -= config.options.guests;
  config.options.guests = 0;
  if (config.options.size == 1) config.given.listener.reset();
}

/// This native rank's number. Rank 0 gives the guests their numbers.
int rank_of(const Settings& settings, const WorldOptions& options) {
  return static_cast<int>(parse_integer(*settings.rank, 0, options.size - options.guests - 1));
}

void use_hostfile(const Settings& settings, const Variables& variables, WorldConfig& config) {
  if (!settings.rank)
    refuse(fmt::format("{} is set, but no rank; set RINGLET_RANK (or MLX_RANK) to this process' line of '{}', counted from 0",
                       settings.hostfile->name, settings.hostfile->value));
  config.meeting.roster = parse_hostfile(settings.hostfile->value, read_named_file(*settings.hostfile, config.interrupted));
  for (const auto* setting : {&settings.reach.listen, &settings.reach.advertise})
    if (*setting)
      refuse(fmt::format("{} and {} are set, but '{}' says already where each rank listens; keep one", (*setting)->name,
                         settings.hostfile->name, settings.hostfile->value));
  const auto natives = static_cast<std::int64_t>(config.meeting.roster.size());
  if (settings.guests) config.options.guests = static_cast<int>(parse_integer(*settings.guests, 0, kMaxWorldSize - natives));
  const auto size = natives + config.options.guests;
  if (settings.world_size && parse_integer(*settings.world_size, 1, kMaxWorldSize) != size)
    refuse(fmt::format("{} is {}, but '{}' has {} ranks{}; they must agree", settings.world_size->name, settings.world_size->value,
                       settings.hostfile->value, natives,
                       config.options.guests > 0 ? fmt::format(", which makes {} with the guests", size) : ""));
  config.options.size = static_cast<int>(size);
  config.options.rank = rank_of(settings, config.options);
  config.meeting.world_id = world_id_of(config.meeting.roster);
  if (size > 1)
    for (const auto& address : config.meeting.roster[static_cast<std::size_t>(config.options.rank)])
      check_exposure(address, variables, config);
}

PlacementPolicy placement_policy(const Variables& variables) {
  const auto pinned = first_set(variables, {"RINGLET_PLACEMENT"});
  if (!pinned) return PlacementPolicy::automatic;
  if (const auto policy = find_placement_policy(pinned->value)) return *policy;
  refuse(fmt::format("RINGLET_PLACEMENT is '{}'; it may be auto, ring or hub", pinned->value));
}

ReduceOrder reduce_order(const InitOptions& options, const Variables& variables) {
  if (options.order) return *options.order;
  const auto setting = first_set(variables, {"RINGLET_ORDER"});
  if (!setting) return ReduceOrder::any;
  if (const auto order = find_reduce_order(setting->value)) return *order;
  refuse(fmt::format("RINGLET_ORDER is '{}'; it may be any or rank", setting->value));
}

CipherSet offered_ciphers(const Variables& variables) {
  const auto setting = first_set(variables, {"RINGLET_CIPHER"});
  if (!setting || setting->value == "auto") return preferred_ciphers();
  if (setting->value == "chacha20") return set_of(CipherSuite::chacha20_poly1305);
  if (setting->value == "aes256gcm") return set_of(CipherSuite::aes256_gcm);
  refuse(fmt::format("RINGLET_CIPHER is '{}'; it may be auto, chacha20 or aes256gcm", setting->value));
}

PartsPolicy parts_policy(const InitOptions& options, const Variables& variables) {
  if (options.parts) return *options.parts;
  const auto setting = first_set(variables, {"RINGLET_PARTS"});
  if (!setting) return PartsPolicy::passive;
  if (const auto policy = find_parts_policy(setting->value)) return *policy;
  refuse(fmt::format("RINGLET_PARTS is '{}'; it may be even, measured or passive", setting->value));
}

OnSplit on_split(const InitOptions& options, const Variables& variables) {
  if (options.on_split) return *options.on_split;
  const auto setting = first_set(variables, {"RINGLET_ON_SPLIT"});
  if (!setting || setting->value == "fork") return OnSplit::fork;
  if (setting->value == "wait") return OnSplit::wait;
  refuse(fmt::format("RINGLET_ON_SPLIT is '{}'; it may be wait or fork", setting->value));
}

/// Fills in the ports at which a rank may listen, for meetings that have a coordinator.
void use_ports(const Variables& variables, WorldConfig& config) {
  const auto ports = ports_setting(variables);
  if (!ports.ok()) refuse(ports.status().text());
  config.meeting.ports = ports.value();
}

/// The socket of `ringlet launch` belongs to the coordinator that is in the environment, and to no other.
std::optional<int> listening_descriptor(const InitOptions& options, const Settings& settings, const Variables& variables) {
  if (options.listen_fd) return options.listen_fd;
  const auto descriptor = first_set(variables, {"RINGLET_COORDINATOR_FD"});
  if (!descriptor || settings.coordinator->value != variables("RINGLET_COORDINATOR")) return std::nullopt;
  return static_cast<int>(parse_integer(*descriptor, 3, 1 << 20));
}

void use_coordinator(const InitOptions& options, const Settings& settings, const Variables& variables, WorldConfig& config) {
  std::string missing;
  const auto need = [&](const std::optional<Setting>& setting, const char* name) {
    if (!setting) missing += fmt::format("{}{}", missing.empty() ? "" : " and ", name);
  };
  need(settings.rank, "RINGLET_RANK");
  need(settings.world_size, "RINGLET_WORLD_SIZE");
  const bool alone = settings.world_size && settings.world_size->value == "1";
  if (!alone) need(settings.coordinator, "RINGLET_COORDINATOR (or RINGLET_HOSTFILE)");
  if (!missing.empty()) {
    std::string present;
    for (const auto* setting : {&settings.rank, &settings.world_size, &settings.coordinator})
      if (*setting) present += fmt::format("{}{}={}", present.empty() ? "" : ", ", (*setting)->name, (*setting)->value);
    refuse(fmt::format("half a configuration: {} set, {} missing; set all of them, or none for a group of one", present, missing));
  }
  config.options.size = static_cast<int>(parse_integer(*settings.world_size, 1, kMaxWorldSize));
  config.options.guests = guests_of(settings, config.options.size);
  config.options.rank = rank_of(settings, config.options);
  if (config.options.size == 1) return;
  const auto address = parse_address(settings.coordinator->value);
  if (!address.ok()) refuse(fmt::format("{}: {}", settings.coordinator->name, address.status().text()));
  if (address.value().port == 0)
    refuse(fmt::format("{} is '{}'; it needs a port from 1 to 65535, so that the others find it", settings.coordinator->name,
                       settings.coordinator->value));
  config.meeting.coordinator = address.value();
  use_ports(variables, config);
  make_reachable(settings.reach, uv::list_interfaces(), config.options.rank, config.meeting);
  check_exposure({config.meeting.listen_at.value_or(address.value()).host, address.value().port}, variables, config);
  config.meeting.world_id = random_world_id();
  if (config.options.rank == 0)
    config.given.listener = listening_descriptor(options, settings, variables);
  else if (options.listen_fd)
    refuse(fmt::format("the option listen_fd is {}, but this is rank {}; rank 0 alone is met at a socket that listens already",
                       *options.listen_fd, config.options.rank));
}

void use_join(const InitOptions& options, const Settings& settings, const Variables& variables, WorldConfig& config) {
  if (options.join && (options.rank || options.world_size || options.coordinator || options.hostfile))
    refuse(
        fmt::format("the option join is '{}', and one of rank, world_size, coordinator and hostfile is set, too; a process that joins a "
                    "group gets its rank there, keep one",
                    *options.join));
  for (const std::string& entry : split_list(settings.join->value)) {
    auto address = parse_address(entry);
    if (!address.ok()) refuse(fmt::format("{}: {}", settings.join->name, address.status().text()));
    if (address.value().port == 0)
      refuse(fmt::format("{} is '{}'; '{}' needs a port from 1 to 65535, that of a rank's door (door())", settings.join->name,
                         settings.join->value, entry));
    check_exposure(address.value(), variables, config);
    config.join.push_back(std::move(address).value());
  }
  if (config.join.empty())
    refuse(fmt::format("{} is '{}'; it must be a list of doors (door()), host:port,...", settings.join->name, settings.join->value));
  use_ports(variables, config);
}

/// Says where ranks of an elastic world listen in later worlds, and for those that want to join.
void use_door(const Settings& settings, const Variables& variables, WorldConfig& config) {
  config.reach = settings.reach;
  MeetingOptions meeting = config.meeting;
  if (!meeting.coordinator && meeting.roster.empty()) {
    // A process alone, or one that will join, listens as it would if the coordinator were its own machine, or a door.
    const auto coordinator = settings.coordinator ? parse_address(settings.coordinator->value) : Status{Errc::invalid_argument, "none"};
    const bool exposed = !config.join.empty() ? !is_loopback(config.join.front())
                         : coordinator.ok()   ? !is_loopback(coordinator.value())
                                              : !config.token.empty() || variables("RINGLET_INSECURE") == "1";
    use_ports(variables, config);
    meeting.coordinator = exposed ? Address{"0.0.0.0", 0} : Address{"127.0.0.1", 0};
    make_reachable(settings.reach, uv::list_interfaces(), 1, meeting);
    if (meeting.listen_at) check_exposure({meeting.listen_at->host, 0}, variables, config);
  }
  config.hosts = listening_hosts(meeting, config.options.rank);
  DoorOptions& door = config.door_options;
  door.hosts = config.hosts;
  door.ports = config.meeting.ports;
  door.preferred = config.options.rank;
  if (settings.door) {
    const Address address = parse_host(*settings.door, settings.door->value);
    check_exposure(address, variables, config);
    door.hosts = {address.host};
    door.port = address.port;
  }
  const std::string& host = door.hosts.front();
  if (host == "0.0.0.0" || host == "::") door.shown_host = meeting.interfaces.empty() ? machine_name() : meeting.interfaces.front().host;
  if (const auto descriptor = first_set(variables, {"RINGLET_DOOR_FD"}))
    config.given.door = static_cast<int>(parse_integer(*descriptor, 3, 1 << 20));
}

}  // namespace

std::string read_token(const InitOptions& options, const Variables& variables) {
  if (const auto token = text_setting(options.token, "the option token", variables, {"RINGLET_TOKEN"}))
    return check_token(token->name, token->value);
  if (const auto file = first_set(variables, {"RINGLET_TOKEN_FILE"}))
    return check_token(fmt::format("'{}' ({})", file->value, file->name), read_named_file(*file, options.interrupted));
  return {};
}

WorldConfig make_world_config(const InitOptions& options, const Variables& variables) {
  check_backend(options.backend);
  WorldConfig config;
  config.options.kernels = choose_kernels(variables);
  config.options.operation_timeout = duration_setting(options.operation_timeout, "the option operation_timeout", variables,
                                                      "RINGLET_TIMEOUT_MS", config.options.operation_timeout);
  Settings settings;
  const Variables nothing_is_set = [](std::string_view) { return std::nullopt; };
  const auto unless = [&](bool other_way) -> const Variables& { return other_way ? nothing_is_set : variables; };
  settings.join = text_setting(options.join, "the option join", unless(options.coordinator || options.hostfile), {"RINGLET_JOIN"});
  const bool elastic = settings.join || switch_setting(options.elastic, variables, "RINGLET_ELASTIC", false);
  config.options.elastic = elastic;
  if (elastic) config.options.heartbeat_timeout = kElasticHeartbeatTimeout;
  config.options.heartbeat_timeout = duration_setting(options.heartbeat_timeout, "the option heartbeat_timeout", variables,
                                                      "RINGLET_HEARTBEAT_TIMEOUT_MS", config.options.heartbeat_timeout);
  config.options.warn_after =
      duration_setting(options.warn_after, "the option warn_after", variables, "RINGLET_WARN_MS", config.options.warn_after, 0);
  config.on_delay = options.on_delay;
  config.interrupted = options.interrupted;
  config.on_split = on_split(options, variables);
  config.peer_memory = switch_setting(options.peer_memory, variables, "RINGLET_PEER_MEMORY", config.peer_memory);
  config.status = switch_setting(options.status, variables, "RINGLET_STATUS", config.status);
  config.trace = read_trace_settings(options, variables);
  if (const auto limit = first_set(variables, {"RINGLET_EXCHANGE_BYTES"}))
    config.options.limits.exchange_bytes = static_cast<std::size_t>(parse_integer(*limit, 0, INT64_MAX));
  if (const auto limit = first_set(variables, {"RINGLET_DIRECT_BYTES"}))
    config.options.limits.direct_bytes = static_cast<std::size_t>(parse_integer(*limit, 0, INT64_MAX));

  config.options.placement.policy = placement_policy(variables);
  config.options.placement.order = reduce_order(options, variables);
  config.options.placement.parts = parts_policy(options, variables);
  config.parts_watch.window =
      duration_setting(std::nullopt, "", variables, "RINGLET_PARTS_WINDOW_MS", config.parts_watch.window, kLeastPartsWindowMs);
  config.token = read_token(options, variables);
  config.encrypt = switch_setting(options.encrypt, variables, "RINGLET_ENCRYPT", !config.token.empty());
  config.ciphers = offered_ciphers(variables);

  settings.rank = number_setting(options.rank, "the option rank", variables, {"RINGLET_RANK", "MLX_RANK"});
  settings.world_size = number_setting(options.world_size, "the option world_size", variables, {"RINGLET_WORLD_SIZE"});
  settings.coordinator =
      text_setting(options.coordinator, "the option coordinator", unless(options.hostfile.has_value()), {"RINGLET_COORDINATOR"});
  settings.hostfile =
      text_setting(options.hostfile, "the option hostfile", unless(options.coordinator.has_value()), {"RINGLET_HOSTFILE", "MLX_HOSTFILE"});
  settings.reach.listen = text_setting(options.listen, "the option listen", variables, {"RINGLET_LISTEN"});
  settings.reach.advertise = text_setting(options.advertise, "the option advertise", variables, {"RINGLET_ADVERTISE"});
  settings.reach.interfaces = text_setting(options.interfaces, "the option interfaces", variables, {"RINGLET_INTERFACES"});
  settings.guests = number_setting(options.guests, "the option guests", variables, {"RINGLET_GUESTS"});
  settings.door = text_setting(options.door, "the option door", variables, {"RINGLET_DOOR"});
  if (settings.coordinator && settings.hostfile && !settings.join)
    refuse(fmt::format("both {} and {} are set; they are two ways to meet, keep one", settings.coordinator->name, settings.hostfile->name));
  if (options.listen_fd && (settings.join || settings.hostfile || !settings.coordinator))
    refuse(
        "the option listen_fd is the socket of rank 0 of a group that meets by a coordinator; set the option coordinator to its "
        "address");
  if (settings.join)
    use_join(options, settings, variables, config);
  else if (settings.hostfile)
    use_hostfile(settings, variables, config);
  else if (settings.rank || settings.world_size || settings.coordinator)
    use_coordinator(options, settings, variables, config);
  else if (options.strict)
    refuse(
        "no group is configured: start the program with `ringlet launch`, or set RINGLET_RANK, RINGLET_WORLD_SIZE and RINGLET_COORDINATOR, "
        "or RINGLET_RANK and RINGLET_HOSTFILE");
  if (elastic) use_door(settings, variables, config);
  if (const auto descriptor = first_set(variables, {"RINGLET_MEMBERSHIP_FD"})) config.given.membership = parse_descriptor(*descriptor);
  use_web_settings(variables, config);
  // Guests come when a person opens the page, which may take long.
  config.meeting.timeout = duration_setting(options.connect_timeout, "the option connect_timeout", variables, "RINGLET_CONNECT_TIMEOUT_MS",
                                            config.options.guests + config.first_guests > 0 ? kPatienceWithGuests : config.meeting.timeout);
  return config;
}

}  // namespace ringlet::native
