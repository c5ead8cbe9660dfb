#include "native/environment.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "native/hostfile.hpp"
#include "tests/temporary_directory.hpp"
#include "transport/crypto/strong_token.hpp"

using namespace ringlet;
using Catch::Matchers::Contains;

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

native::WorldConfig configure(const Values& values, const InitOptions& options = {}) {
  return native::make_world_config(options, [&](std::string_view name) -> std::optional<std::string> {
    const auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  });
}

/// A file that is removed with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) { std::ofstream(name_) << text; }
  const std::string& name() const { return name_; }

 private:
  test::TemporaryDirectory directory_;
  std::string name_ = directory_.path() + "/hosts.json";
};

}  // namespace

TEST_CASE("nothing configured is a group of one, or an error if strict") {
  CHECK(configure({}).options.size == 1);
  CHECK_THROWS_WITH(configure({}, {.strict = true}), Contains("ringlet launch") && Contains("RINGLET_COORDINATOR"));
}

TEST_CASE("a coordinator configures rank, size and address") {
  const auto config = configure({{"RINGLET_RANK", "2"}, {"RINGLET_WORLD_SIZE", "4"}, {"RINGLET_COORDINATOR", "[::1]:5000"}});
  CHECK(config.options.rank == 2);
  CHECK(config.options.size == 4);
  CHECK(config.meeting.coordinator == Address{"::1", 5000});
  CHECK_FALSE(config.given.listener);
}

TEST_CASE("options win over the environment") {
  const auto config =
      configure({{"RINGLET_RANK", "2"}, {"RINGLET_WORLD_SIZE", "4"}, {"RINGLET_COORDINATOR", "127.0.0.1:5000"}},
                {.rank = 1, .world_size = 3, .coordinator = "127.0.0.1:6000", .operation_timeout = std::chrono::milliseconds(50)});
  CHECK(config.options.rank == 1);
  CHECK(config.options.size == 3);
  CHECK(config.meeting.coordinator->port == 6000);
  CHECK(config.options.operation_timeout == Duration::milliseconds(50));
}

TEST_CASE("a way to meet that the options name leaves the variables of the others unread") {
  const Values joins{{"RINGLET_JOIN", "127.0.0.1:9"}, {"RINGLET_HOSTFILE", "missing.json"}};
  const auto config = configure(joins, {.rank = 1, .world_size = 2, .coordinator = "127.0.0.1:6000"});
  CHECK(config.join.empty());
  CHECK(config.meeting.coordinator->port == 6000);
  const TemporaryFile file(R"([["127.0.0.1:5001"], ["127.0.0.1:5002"]])");
  CHECK(configure({{"RINGLET_COORDINATOR", "127.0.0.1:5000"}}, {.rank = 1, .hostfile = file.name()}).meeting.roster.size() == 2);
}

TEST_CASE("the socket that was inherited belongs to the coordinator of the environment alone") {
  const Values launched{
      {"RINGLET_RANK", "0"}, {"RINGLET_WORLD_SIZE", "2"}, {"RINGLET_COORDINATOR", "127.0.0.1:5000"}, {"RINGLET_COORDINATOR_FD", "7"}};
  CHECK(configure(launched).given.listener == 7);
  CHECK(configure(launched, {.coordinator = "127.0.0.1:5000"}).given.listener == 7);
  CHECK_FALSE(configure(launched, {.coordinator = "127.0.0.1:6000"}).given.listener);
  CHECK(configure(launched, {.coordinator = "127.0.0.1:6000", .listen_fd = 9}).given.listener == 9);
  CHECK(configure(launched, {.listen_fd = 9}).given.listener == 9);
  CHECK_FALSE(configure(launched, {.rank = 1}).given.listener);
  CHECK_THROWS_WITH(configure(launched, {.rank = 1, .listen_fd = 9}), Contains("the option listen_fd") && Contains("rank 1"));
  CHECK_THROWS_WITH(configure({}, {.rank = 0, .world_size = 2, .listen_fd = 9}), Contains("set the option coordinator"));
}

TEST_CASE("the limit of warnings may be 0, other times may not") {
  CHECK(configure({}).options.warn_after == Duration::seconds(10));
  CHECK(configure({{"RINGLET_WARN_MS", "250"}}).options.warn_after == Duration::milliseconds(250));
  CHECK(configure({{"RINGLET_WARN_MS", "0"}}).options.warn_after == Duration{});
  CHECK(configure({}, {.warn_after = std::chrono::milliseconds(40)}).options.warn_after == Duration::milliseconds(40));
  CHECK_THROWS_WITH(configure({{"RINGLET_WARN_MS", "-1"}}), Contains("RINGLET_WARN_MS is '-1'; it must be a whole number from 0"));
  CHECK_THROWS_WITH(configure({{"RINGLET_TIMEOUT_MS", "0"}}), Contains("from 1"));
}

TEST_CASE("half a configuration names what is missing") {
  CHECK_THROWS_WITH(configure({{"RINGLET_RANK", "0"}}),
                    Contains("RINGLET_RANK=0 set") && Contains("RINGLET_WORLD_SIZE") && Contains("RINGLET_COORDINATOR"));
  CHECK_THROWS_WITH(configure({{"RINGLET_RANK", "0"}, {"RINGLET_WORLD_SIZE", "2"}}),
                    Contains("RINGLET_COORDINATOR (or RINGLET_HOSTFILE) missing"));
  CHECK_THROWS_WITH(configure({{"RINGLET_WORLD_SIZE", "2"}, {"RINGLET_COORDINATOR", "127.0.0.1:5000"}}), Contains("RINGLET_RANK missing"));
  CHECK_THROWS_WITH(configure({{"RINGLET_COORDINATOR", "127.0.0.1:5000"}}), Contains("RINGLET_RANK and RINGLET_WORLD_SIZE missing"));
  CHECK_THROWS_WITH(configure({{"RINGLET_HOSTFILE", "hosts.json"}}), Contains("no rank"));
  CHECK_THROWS_WITH(configure({{"MLX_RANK", "1"}}), Contains("MLX_RANK=1 set"));
}

TEST_CASE("bad values are refused with name, value and range") {
  const Values good{{"RINGLET_RANK", "0"}, {"RINGLET_WORLD_SIZE", "2"}, {"RINGLET_COORDINATOR", "127.0.0.1:5000"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Values values = good;
    values[name] = value;
    return values;
  };
  CHECK_THROWS_WITH(configure(with("RINGLET_RANK", "two")), Contains("RINGLET_RANK is 'two'") && Contains("0 to 1"));
  CHECK_THROWS_WITH(configure(with("RINGLET_RANK", "2")), Contains("RINGLET_RANK is '2'"));
  CHECK_THROWS_WITH(configure(with("RINGLET_RANK", "-1")), Contains("RINGLET_RANK is '-1'"));
  CHECK_THROWS_WITH(configure(with("RINGLET_WORLD_SIZE", "0")), Contains("RINGLET_WORLD_SIZE is '0'"));
  CHECK_THROWS_WITH(configure(with("RINGLET_WORLD_SIZE", "99999999999999999999")), Contains("RINGLET_WORLD_SIZE"));
  CHECK_THROWS_WITH(configure(with("RINGLET_COORDINATOR", "127.0.0.1")), Contains("RINGLET_COORDINATOR"));
  CHECK_THROWS_WITH(configure(with("RINGLET_COORDINATOR", "127.0.0.1:0")), Contains("port"));
  CHECK_THROWS_WITH(configure(with("RINGLET_PLACEMENT", "star")), Contains("RINGLET_PLACEMENT is 'star'; it may be auto, ring or hub"));
  CHECK_THROWS_WITH(configure(with("RINGLET_ORDER", "ranks")), Contains("RINGLET_ORDER is 'ranks'; it may be any or rank"));
  CHECK_THROWS_WITH(configure(with("RINGLET_PARTS", "odd")), Contains("RINGLET_PARTS is 'odd'; it may be even, measured or passive"));
  CHECK_THROWS_WITH(configure(with("RINGLET_PARTS_WINDOW_MS", "199")), Contains("RINGLET_PARTS_WINDOW_MS is '199'") && Contains("200"));
  CHECK_THROWS_WITH(configure(with("RINGLET_SIMD", "mmx")), Contains("RINGLET_SIMD is 'mmx'") && Contains("scalar"));
  CHECK_THROWS_WITH(configure(with("RINGLET_TIMEOUT_MS", "soon")), Contains("RINGLET_TIMEOUT_MS is 'soon'"));
  CHECK_THROWS_WITH(configure(with("RINGLET_HOSTFILE", "x")), Contains("keep one"));
  CHECK_THROWS_WITH(configure(good, {.backend = "carrier-pigeon"}), Contains("carrier-pigeon") && Contains("tcp"));
}

TEST_CASE("only loopback without the owner's word") {
  const Values values{{"RINGLET_RANK", "0"}, {"RINGLET_WORLD_SIZE", "2"}, {"RINGLET_COORDINATOR", "10.0.0.7:5000"}};
  CHECK_THROWS_WITH(configure(values), Contains("10.0.0.7:5000") && Contains("RINGLET_INSECURE=1"));
  Values forced = values;
  forced["RINGLET_INSECURE"] = "1";
  CHECK(configure(forced).options.size == 2);
  CHECK_THROWS_WITH(configure(values), Contains("`ringlet token`"));
  Values with_token = values;
  with_token["RINGLET_TOKEN"] = "a token of all ranks";
  CHECK(configure(with_token).token == strong_token("a token of all ranks"));
}

TEST_CASE("the token comes from option, variable or file") {
  const TemporaryFile file("  the token in the file\n");
  CHECK(configure({}).token.empty());
  CHECK(configure({{"RINGLET_TOKEN_FILE", file.name()}}).token == strong_token("the token in the file"));
  CHECK(configure({{"RINGLET_TOKEN_FILE", file.name()}, {"RINGLET_TOKEN", "the variable's token"}}).token ==
        strong_token("the variable's token"));
  InitOptions options;
  options.token = "the option's own token";
  CHECK(configure({{"RINGLET_TOKEN", "the variable's token"}}, options).token == strong_token("the option's own token"));
  CHECK_THROWS_WITH(configure({{"RINGLET_TOKEN", "short one"}}),
                    Contains("RINGLET_TOKEN") && Contains("9 characters") && !Contains("short"));
  CHECK_THROWS_WITH(configure({{"RINGLET_TOKEN_FILE", "no-such.token"}}), Contains("RINGLET_TOKEN_FILE is 'no-such.token'"));
}

TEST_CASE("guests are the last ranks, and never this one") {
  const Values values{
      {"RINGLET_RANK", "1"}, {"RINGLET_WORLD_SIZE", "4"}, {"RINGLET_COORDINATOR", "127.0.0.1:5000"}, {"RINGLET_GUESTS", "2"}};
  CHECK(configure(values).options.guests == 2);
  CHECK(configure(values).meeting.timeout == Duration::seconds(600));
  CHECK(configure(values).options.size == 4);
  const auto with = [&](const std::string& name, const std::string& value) {
    Values changed = values;
    changed[name] = value;
    return changed;
  };
  CHECK_THROWS_WITH(configure(with("RINGLET_RANK", "2")), Contains("RINGLET_RANK is '2'") && Contains("0 to 1"));
  CHECK_THROWS_WITH(configure(with("RINGLET_GUESTS", "4")), Contains("RINGLET_GUESTS is '4'") && Contains("0 to 3"));
  const TemporaryFile file(R"([["127.0.0.1:5000"], ["127.0.0.1:5002"]])");
  const Values hosts{{"RINGLET_RANK", "1"}, {"RINGLET_HOSTFILE", file.name()}, {"RINGLET_GUESTS", "3"}};
  CHECK(configure(hosts).options.size == 5);
  CHECK(configure(hosts).options.guests == 3);
}

TEST_CASE("where to listen can be said, and counts for who may join") {
  const Values values{
      {"RINGLET_RANK", "1"}, {"RINGLET_WORLD_SIZE", "4"}, {"RINGLET_COORDINATOR", "127.0.0.1:5000"}, {"RINGLET_LISTEN", "0.0.0.0"}};
  CHECK_THROWS_WITH(configure(values), Contains("0.0.0.0") && Contains("RINGLET_TOKEN"));
  Values with_token = values;
  with_token["RINGLET_TOKEN"] = "a token of all ranks";
  CHECK(configure(with_token).meeting.listen_at == Address{"0.0.0.0", 0});
  CHECK(configure(with_token).meeting.endpoints.empty());
}

TEST_CASE("answering `ringlet status` can be switched off") {
  CHECK_FALSE(configure({{"RINGLET_STATUS", "off"}}).status);
  CHECK(configure({}).status);
  CHECK_THROWS_WITH(configure({{"RINGLET_STATUS", "maybe"}}), Contains("RINGLET_STATUS is 'maybe'") && Contains("'off'"));
}

TEST_CASE("a file is named for the trace, and its limit in MiB") {
  CHECK(configure({}).trace.file.empty());
  const auto config = configure({{"RINGLET_TRACE", "t.json"}, {"RINGLET_TRACE_MIB", "3"}});
  CHECK(config.trace.file == "t.json");
  CHECK(config.trace.most_bytes == 3U << 20);
  CHECK_THROWS_WITH(configure({{"RINGLET_TRACE_MIB", "0"}}), Contains("RINGLET_TRACE_MIB"));
  CHECK(config.trace.variable == "RINGLET_TRACE");
  const auto own = configure({{"RINGLET_TRACE", "t.json"}}, {.trace = "own.json"});
  CHECK(own.trace.file == "own.json");
  CHECK(own.trace.variable.empty());

  const auto given = configure({{"RINGLET_TRACE_FD", "7:2049:18446744073709551615"}}).trace.given_file;
  REQUIRE(given);
  CHECK(given->number == 7);
  CHECK(given->device == 2049);
  CHECK(given->inode == UINT64_MAX);
  for (const char* wrong : {"7", "7:", "7:1", "7:1:", "7:1:2:3", "7:1:x", "-1:1:2", "7:1:2 ", "99999999:1:2"})
    CHECK_THROWS_WITH(configure({{"RINGLET_TRACE_FD", wrong}}), Contains(std::string("RINGLET_TRACE_FD is '") + wrong + "'"));
}

TEST_CASE("reading memory of ranks of this machine can be switched off") {
  CHECK_FALSE(configure({{"RINGLET_PEER_MEMORY", "off"}}).peer_memory);
  CHECK(configure({{"RINGLET_PEER_MEMORY", "on"}}).peer_memory);
  CHECK(configure({}).peer_memory);
  CHECK_THROWS_WITH(configure({{"RINGLET_PEER_MEMORY", "yes"}}), Contains("RINGLET_PEER_MEMORY is 'yes'") && Contains("'off'"));
}

TEST_CASE("links are encrypted where there is a token, or as is said") {
  const std::string token = "a token of all ranks";
  CHECK(configure({}).encrypt == false);
  CHECK(configure({{"RINGLET_TOKEN", token}}).encrypt == true);
  CHECK(configure({{"RINGLET_TOKEN", token}, {"RINGLET_ENCRYPT", "off"}}).encrypt == false);
  CHECK(configure({{"RINGLET_ENCRYPT", "on"}}).encrypt == true);
  CHECK_THROWS_WITH(configure({{"RINGLET_ENCRYPT", "maybe"}}), Contains("RINGLET_ENCRYPT is 'maybe'") && Contains("'off'"));
}

TEST_CASE("the ciphers of links are those that this processor computes well, or the one that is said") {
  CHECK(configure({}).ciphers == preferred_ciphers());
  CHECK(configure({{"RINGLET_CIPHER", "auto"}}).ciphers == preferred_ciphers());
  CHECK(configure({{"RINGLET_CIPHER", "chacha20"}}).ciphers == set_of(CipherSuite::chacha20_poly1305));
  CHECK(configure({{"RINGLET_CIPHER", "aes256gcm"}}).ciphers == set_of(CipherSuite::aes256_gcm));
  CHECK_THROWS_WITH(configure({{"RINGLET_CIPHER", "rot13"}}), Contains("RINGLET_CIPHER is 'rot13'") && Contains("aes256gcm"));
}

TEST_CASE("a pinned instruction set is taken") {
  CHECK(configure({{"RINGLET_PLACEMENT", "hub"}}).options.placement.policy == PlacementPolicy::hub);
  CHECK(configure({}).options.placement.policy == PlacementPolicy::automatic);
  CHECK(configure({}).options.placement.order == ReduceOrder::any);
  CHECK(configure({{"RINGLET_ORDER", "rank"}}).options.placement.order == ReduceOrder::rank);
  CHECK(configure({{"RINGLET_ORDER", "rank"}}, {.order = ReduceOrder::any}).options.placement.order == ReduceOrder::any);
  CHECK(configure({}).options.placement.parts == PartsPolicy::passive);
  CHECK(configure({{"RINGLET_PARTS", "even"}}).options.placement.parts == PartsPolicy::even);
  CHECK(configure({{"RINGLET_PARTS", "measured"}}).options.placement.parts == PartsPolicy::measured);
  CHECK(configure({{"RINGLET_PARTS", "passive"}}).options.placement.parts == PartsPolicy::passive);
  CHECK(configure({{"RINGLET_PARTS", "passive"}}, {.parts = PartsPolicy::measured}).options.placement.parts == PartsPolicy::measured);
  CHECK(configure({{"RINGLET_PARTS", "no such parts"}}, {.parts = PartsPolicy::even}).options.placement.parts == PartsPolicy::even);
  CHECK_THROWS_WITH(configure({{"RINGLET_PARTS", "fast"}}), Contains("RINGLET_PARTS is 'fast'") && Contains("passive"));
  CHECK(configure({}).parts_watch.window == Duration::seconds(5));
  CHECK(configure({{"RINGLET_PARTS_WINDOW_MS", "250"}}).parts_watch.window == Duration::milliseconds(250));
  CHECK(configure({{"RINGLET_SIMD", "scalar"}}).options.kernels->name() == "scalar");
  CHECK(configure({}).options.kernels == simd::find(""));
}

TEST_CASE("MLX's rank and hostfile work as they are") {
  const TemporaryFile file(R"([["127.0.0.1:5000", "127.0.0.1:5001"], ["127.0.0.1:5002"]])");
  const auto config = configure({{"MLX_RANK", "1"}, {"MLX_HOSTFILE", file.name()}});
  CHECK(config.options.rank == 1);
  CHECK(config.options.size == 2);
  REQUIRE(config.meeting.roster.size() == 2);
  CHECK(config.meeting.roster[0].size() == 2);
  CHECK(config.meeting.roster[1][0] == Address{"127.0.0.1", 5002});
  CHECK_THROWS_WITH(configure({{"MLX_RANK", "2"}, {"MLX_HOSTFILE", file.name()}}), Contains("MLX_RANK is '2'"));
  CHECK_THROWS_WITH(configure({{"MLX_RANK", "1"}, {"MLX_HOSTFILE", file.name()}, {"RINGLET_WORLD_SIZE", "3"}}),
                    Contains("2 ranks") && Contains("RINGLET_WORLD_SIZE is 3"));
  CHECK_THROWS_WITH(configure({{"MLX_RANK", "1"}, {"MLX_HOSTFILE", "no-such-file.json"}}), Contains("no-such-file.json"));
}

TEST_CASE("a bad hostfile is refused with its place") {
  const auto parse = [](std::string_view text) { return native::parse_hostfile("hosts.json", text); };
  CHECK_THROWS_WITH(parse(""), Contains("hosts.json") && Contains("not valid JSON"));
  CHECK_THROWS_WITH(parse("{\"a\": 1}"), Contains("not a list of ranks"));
  CHECK_THROWS_WITH(parse("[]"), Contains("not a list of ranks"));
  CHECK_THROWS_WITH(parse("[[\"127.0.0.1:1\"], []]"), Contains("rank 1 has no list of addresses"));
  CHECK_THROWS_WITH(parse("[[\"127.0.0.1:1\"], [2]]"), Contains("rank 1 has an address that is not a string"));
  CHECK_THROWS_WITH(parse("[[\"127.0.0.1:1\"], [\"127.0.0.1\"]]"), Contains("rank 1"));
  CHECK_THROWS_WITH(parse("[[\"127.0.0.1:70000\"]]"), Contains("rank 0"));
  CHECK_THROWS_WITH(parse("[[\"127.0.0.1:0\"]]"), Contains("needs a port"));
  CHECK_THROWS_WITH(parse("[[\"127.0.0.1:5\"], [\"127.0.0.1:5\"]]"), Contains("ranks 0 and 1 have the same address"));
}

TEST_CASE("backends") {
  CHECK(is_available());
  CHECK(is_available("tcp"));
  CHECK_FALSE(is_available("nccl"));
  CHECK_FALSE(is_available(""));
}

TEST_CASE("a process that joins is told who it is by the group") {
  const auto config = configure({{"RINGLET_JOIN", "127.0.0.1:7000,[::1]:7001"},
                                 {"RINGLET_RANK", "2"},
                                 {"RINGLET_WORLD_SIZE", "4"},
                                 {"RINGLET_COORDINATOR", "127.0.0.1:5000"},
                                 {"RINGLET_HOSTFILE", "/nowhere"}});
  CHECK(config.join == std::vector<Address>{{"127.0.0.1", 7000}, {"::1", 7001}});
  CHECK(config.options.elastic);
  CHECK(config.options.size == 1);
  CHECK_FALSE(config.meeting.coordinator);
  CHECK(config.hosts == std::vector<std::string>{"127.0.0.1"});
  CHECK_THROWS_WITH(configure({{"RINGLET_JOIN", "10.0.0.1:7000"}}), Contains("10.0.0.1:7000") && Contains("no token"));
  CHECK_THROWS_WITH(configure({{"RINGLET_JOIN", "here"}}), Contains("RINGLET_JOIN"));
}

TEST_CASE("ranks of an elastic group have a door where they listen, or where is said") {
  const Values two{
      {"RINGLET_ELASTIC", "on"}, {"RINGLET_RANK", "1"}, {"RINGLET_WORLD_SIZE", "2"}, {"RINGLET_COORDINATOR", "127.0.0.1:5000"}};
  CHECK(configure(two).door_options.hosts == std::vector<std::string>{"127.0.0.1"});
  CHECK(configure(two).door_options.port == 0);
  Values said = two;
  said["RINGLET_DOOR"] = "::1";
  CHECK(configure(said).door_options.hosts == std::vector<std::string>{"::1"});
  said["RINGLET_DOOR"] = "127.0.0.2:7000";
  CHECK(configure(said).door_options.port == 7000);
  said["RINGLET_DOOR_FD"] = "9";
  CHECK(configure(said).given.door == 9);
  said["RINGLET_DOOR"] = "0.0.0.0:7000";
  CHECK_THROWS_WITH(configure(said), Contains("no token"));
  said["RINGLET_TOKEN"] = "a token of this test alone";
  CHECK_FALSE(configure(said).door_options.shown_host.empty());
  // A group of one listens beyond the loopback where it has a token.
  CHECK(configure({{"RINGLET_ELASTIC", "on"}}).hosts == std::vector<std::string>{"127.0.0.1"});
  CHECK(configure({{"RINGLET_ELASTIC", "on"}, {"RINGLET_TOKEN", "a token of this test alone"}}).hosts ==
        std::vector<std::string>{"0.0.0.0", "::"});
  // One that was started as others of its machine may be joined by those alone.
  CHECK(configure({{"RINGLET_ELASTIC", "on"},
                   {"RINGLET_TOKEN", "a token of this test alone"},
                   {"RINGLET_RANK", "0"},
                   {"RINGLET_WORLD_SIZE", "1"},
                   {"RINGLET_COORDINATOR", "127.0.0.1:5000"}})
            .hosts == std::vector<std::string>{"127.0.0.1"});
  CHECK(configure({{"RINGLET_MEMBERSHIP_FD", "9:8:77"}}).given.membership->number == 9);
  Values ports = two;
  ports["RINGLET_COORDINATOR"] = "10.1.2.3:5000";
  ports["RINGLET_TOKEN"] = "a token of this test alone";
  ports["RINGLET_PORTS"] = "47175-47238";
  CHECK(configure(ports).door_options.hosts == std::vector<std::string>{"0.0.0.0", "::"});
  CHECK(configure(ports).door_options.ports.first == 47175);
}
