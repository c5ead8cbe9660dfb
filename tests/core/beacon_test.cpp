#include <catch2/catch.hpp>

#include "beacon.pb.h"
#include "tests/core/random_beacon.hpp"
#include "tools/discovery/beacon.hpp"

using namespace ringlet;
using namespace ringlet::discovery;
using namespace ringlet::test;

namespace reference = ringlet_reference;

namespace {

const std::string kPrefix{"RNGB\x01", 5};

std::string text_of(ConstBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
std::optional<Beacon> decode_beacon(const std::string& datagram) { return discovery::decode_beacon(std::as_bytes(std::span(datagram))); }

reference::Beacon to_reference_beacon(const Beacon& beacon) {
  reference::Beacon to;
  to.set_kind(static_cast<reference::Beacon::Kind>(beacon.kind));
  to.set_instance(beacon.instance);
  to.set_sequence(beacon.sequence);
  to.set_name(beacon.profile.name);
  to.set_version(beacon.profile.version);
  to.set_group(beacon.profile.group);
  to.set_epoch(beacon.profile.epoch);
  to.set_port(beacon.profile.port);
  for (const Device& device : beacon.profile.devices) {
    auto* added = to.add_devices();
    added->set_kind(device.kind);
    added->set_cores(device.cores);
    added->set_memory_bytes(device.memory_bytes);
    added->set_free_memory_bytes(device.free_memory_bytes);
    added->set_simd(device.simd);
  }
  for (const NetworkInterface& interface : beacon.profile.interfaces) {
    auto* added = to.add_interfaces();
    added->set_name(interface.name);
    for (const IpAddress& address : interface.addresses) added->add_addresses(text_of(address.bytes()));
  }
  to.set_pairing_port(beacon.profile.pairing_port);
  for (const IpAddress& address : beacon.known) to.add_known(text_of(address.bytes()));
  return to;
}

reference::Beacon valid() {
  reference::Beacon beacon;
  beacon.set_instance(7);
  beacon.set_sequence(1);
  beacon.set_name("attic");
  return beacon;
}

bool accepted(const reference::Beacon& beacon) { return decode_beacon(kPrefix + beacon.SerializeAsString()).has_value(); }

}  // namespace

TEST_CASE("beacons are byte for byte what protoc's classes write and read") {
  SimRandom random(1);
  for (int round = 0; round < 5000; ++round) {
    const Beacon beacon = random_beacon(random);
    const std::string expected = kPrefix + to_reference_beacon(beacon).SerializeAsString();
    const std::string ours = encode_beacon(beacon);
    REQUIRE(ours == expected);
    REQUIRE(ours.size() <= kMaxBeaconBytes);
    REQUIRE(decode_beacon(ours) == beacon);
    const std::size_t wanted = random.below(1500);
    const std::string padded = encode_padded(beacon, wanted);
    REQUIRE(padded.size() <= std::max(ours.size(), std::min(wanted, kMaxBeaconBytes)));
    REQUIRE(padded.size() + 4 >= std::min(wanted, kMaxBeaconBytes));
    REQUIRE(decode_beacon(padded) == beacon);
  }
}

TEST_CASE("the largest beacon fits into a datagram, and what is beyond the limits is cut") {
  Beacon beacon{Beacon::Kind::goodbye, UINT64_MAX, UINT64_MAX, {}};
  const std::string long_text(500, 'x');
  beacon.profile = {long_text, long_text, long_text, UINT64_MAX, UINT16_MAX, {}, {}, UINT16_MAX};
  beacon.profile.devices.assign(20, {long_text, UINT32_MAX, UINT64_MAX, UINT64_MAX, long_text});
  const IpAddress v6 = *IpAddress::from_bytes(std::as_bytes(std::span("\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16)));
  beacon.profile.interfaces.assign(20, {long_text, std::vector<IpAddress>(5, v6)});
  const std::string datagram = encode_beacon(beacon);
  CHECK(datagram.size() <= kMaxBeaconBytes);
  const auto decoded = decode_beacon(datagram);
  REQUIRE(decoded);
  CHECK(decoded->profile == limited(beacon.profile));
  CHECK(decoded->profile.name.size() == kMaxNameBytes);
  CHECK(decoded->profile.devices.size() == kMaxDevices);
  CHECK(decoded->profile.interfaces.size() == kMaxInterfaces);
  CHECK(decoded->profile.interfaces[3].addresses.size() == 1);
  CHECK(decoded->profile.interfaces[7].addresses.empty());
}

TEST_CASE("texts are cut between characters, and what cannot be shown is replaced") {
  Profile profile;
  profile.name = std::string(63, 'a') + "\xc3\xa4";  // a character of two bytes across the limit
  profile.version = "1\x1b[31m\n2\x7f\xc2\x9b";
  profile.group = "a\xff z";
  profile = limited(profile);
  CHECK(profile.name == std::string(63, 'a'));
  CHECK(profile.version == "1?[31m?2??");
  CHECK(profile.group == "a? z");
}

TEST_CASE("what is out of bounds is refused, unknown fields are skipped") {
  CHECK(accepted(valid()));
  const auto refused = [](auto change) {
    reference::Beacon beacon = valid();
    change(beacon);
    return !accepted(beacon);
  };
  CHECK(refused([](auto& beacon) { beacon.set_instance(0); }));
  CHECK(refused([](auto& beacon) { beacon.set_kind(static_cast<reference::Beacon::Kind>(3)); }));
  CHECK(refused([](auto& beacon) { beacon.set_kind(static_cast<reference::Beacon::Kind>(-1)); }));
  CHECK(refused([](auto& beacon) { beacon.set_port(65'536); }));
  CHECK(refused([](auto& beacon) { beacon.set_pairing_port(65'536); }));
  CHECK(refused([](auto& beacon) { beacon.set_name(std::string(65, 'x')); }));
  CHECK(refused([](auto& beacon) { beacon.set_name("\x1b[2J"); }));
  CHECK(refused([](auto& beacon) { beacon.set_group("\xc2\x9b"); }));
  CHECK(refused([](auto& beacon) { beacon.set_version(std::string(33, 'x')); }));
  CHECK(refused([](auto& beacon) { beacon.add_devices()->set_simd(std::string(33, 'x')); }));
  CHECK(refused([](auto& beacon) {
    for (int i = 0; i < 5; ++i) beacon.add_devices();
  }));
  CHECK(refused([](auto& beacon) {
    for (int i = 0; i < 9; ++i) beacon.add_interfaces();
  }));
  CHECK(refused([](auto& beacon) {
    for (int i = 0; i < 17; ++i) beacon.mutable_interfaces()->Add()->add_addresses(std::string("\x0a\0\0\1", 4));
  }));
  for (const std::string& address : {std::string(), std::string(5, 'a'), std::string(4, '\0'), std::string(4, '\xff'),
                                     std::string("\xe0\0\0\1", 4), std::string(16, '\0'), "\xff" + std::string(15, '\1')})
    CHECK(refused([&](auto& beacon) { beacon.add_interfaces()->add_addresses(address); }));
  CHECK(refused([](auto& beacon) { beacon.set_padding(std::string(1200, 'x')); }));

  reference::Beacon newer = valid();
  newer.GetReflection()->MutableUnknownFields(&newer)->AddFixed32(99, 7);
  newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(98, "xyz");
  CHECK(accepted(newer));
  const std::string good = valid().SerializeAsString();
  CHECK_FALSE(decode_beacon(good));
  CHECK_FALSE(decode_beacon(std::string("RNGB\x02", 5) + good));
  CHECK_FALSE(decode_beacon(kPrefix));
  CHECK_FALSE(decode_beacon(""));
}

TEST_CASE("truncated, changed and random datagrams never crash, and what is read can be written again") {
  SimRandom random(3);
  const auto try_it = [](const std::string& datagram) {
    const auto beacon = decode_beacon(datagram);
    if (beacon) REQUIRE(decode_beacon(encode_beacon(*beacon)) == beacon);
  };
  for (int round = 0; round < 5000; ++round) {
    std::string datagram = encode_beacon(random_beacon(random));
    for (std::size_t length = 0; length < datagram.size(); length += 1 + random.below(20)) try_it(datagram.substr(0, length));
    for (auto changes = 1 + random.below(4); changes > 0; --changes)
      datagram[kPrefix.size() + random.below(datagram.size() - kPrefix.size())] = static_cast<char>(random.next());
    try_it(datagram);
  }
  for (int round = 0; round < 50'000; ++round) {
    std::string datagram(random.below(60), 'x');
    for (char& letter : datagram) letter = static_cast<char>(random.below(2) == 0 ? random.below(128) : random.next());
    try_it(kPrefix + datagram);
    try_it(datagram);
  }
}
