#include "tools/discovery/beacon.hpp"

#include <algorithm>
#include <iterator>
#include <protozero/pbf_message.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/base/printable.hpp"

namespace ringlet::discovery {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using protozero::tag_and_type;

constexpr std::string_view kPrefix{"RNGB\x01", 5};
constexpr protozero::pbf_tag_type kPaddingTag = 15;
constexpr std::size_t kPaddingHead = 3;  // its tag, and a length of at most two bytes

bool is_text(std::string_view text, std::size_t limit) { return text.size() <= limit && is_printable(text); }

std::string limited_text(const std::string& text, std::size_t limit) { return std::string(cut_text(printable(text), limit)); }

void put_text(pbf_writer& writer, protozero::pbf_tag_type tag, const std::string& value) {
  if (!value.empty()) writer.add_string(tag, value);
}
void put_number(pbf_writer& writer, protozero::pbf_tag_type tag, std::uint64_t value) {
  if (value != 0) writer.add_uint64(tag, value);
}

void write(pbf_writer& writer, const Device& device) {
  put_text(writer, 1, device.kind);
  put_number(writer, 2, device.cores);
  put_number(writer, 3, device.memory_bytes);
  put_number(writer, 4, device.free_memory_bytes);
  put_text(writer, 5, device.simd);
}

void put_address(pbf_writer& writer, protozero::pbf_tag_type tag, const IpAddress& address) {
  writer.add_bytes(tag, reinterpret_cast<const char*>(address.bytes().data()), address.bytes().size());
}

void write(pbf_writer& writer, const NetworkInterface& interface) {
  put_text(writer, 1, interface.name);
  for (const IpAddress& address : interface.addresses) put_address(writer, 2, address);
}

// protozero's own nested writer is not used, because it omits a message without fields.
template <class Message>
void put_message(pbf_writer& writer, protozero::pbf_tag_type tag, const Message& message) {
  std::string fields;
  pbf_writer nested(fields);
  write(nested, message);
  writer.add_message(tag, fields);
}

void write(pbf_writer& writer, const Beacon& beacon) {
  if (beacon.kind != Beacon::Kind::presence) writer.add_enum(1, static_cast<std::int32_t>(beacon.kind));
  if (beacon.instance != 0) writer.add_fixed64(2, beacon.instance);
  put_number(writer, 3, beacon.sequence);
  const Profile profile = limited(beacon.profile);
  put_text(writer, 4, profile.name);
  put_text(writer, 5, profile.version);
  put_text(writer, 6, profile.group);
  put_number(writer, 7, profile.epoch);
  put_number(writer, 8, profile.port);
  for (const Device& device : profile.devices) put_message(writer, 9, device);
  for (const NetworkInterface& interface : profile.interfaces) put_message(writer, 10, interface);
  put_number(writer, 11, profile.pairing_port);
  for (std::size_t i = 0; i < std::min(beacon.known.size(), kMaxKnown); ++i) put_address(writer, 12, beacon.known[i]);
}

/// Reads the fields of one beacon. A field outside its bounds makes the whole beacon invalid.
class Decoder {
 public:
  std::optional<Beacon> read(pbf_reader reader) {
    while (!refused_ && reader.next()) read_field(reader);
    if (refused_ || beacon_.instance == 0) return std::nullopt;
    return std::move(beacon_);
  }

 private:
  void require(bool condition) { refused_ = refused_ || !condition; }

  std::string text(pbf_reader& reader, std::size_t limit) {
    const auto view = reader.get_view();
    const std::string_view found(view.data(), view.size());
    require(is_text(found, limit));
    return refused_ ? std::string() : std::string(found);
  }

  void read_field(pbf_reader& reader) {
    Profile& profile = beacon_.profile;
    switch (reader.tag_and_type()) {
      case tag_and_type(1, pbf_wire_type::varint):
        return read_kind(reader.get_enum());
      case tag_and_type(2, pbf_wire_type::fixed64):
        beacon_.instance = reader.get_fixed64();
        return;
      case tag_and_type(3, pbf_wire_type::varint):
        beacon_.sequence = reader.get_uint64();
        return;
      case tag_and_type(4, pbf_wire_type::length_delimited):
        profile.name = text(reader, kMaxNameBytes);
        return;
      case tag_and_type(5, pbf_wire_type::length_delimited):
        profile.version = text(reader, kMaxLabelBytes);
        return;
      case tag_and_type(6, pbf_wire_type::length_delimited):
        profile.group = text(reader, kMaxNameBytes);
        return;
      case tag_and_type(7, pbf_wire_type::varint):
        profile.epoch = reader.get_uint64();
        return;
      case tag_and_type(8, pbf_wire_type::varint):
        return read_port(reader.get_uint32(), profile.port);
      case tag_and_type(9, pbf_wire_type::length_delimited):
        require(profile.devices.size() < kMaxDevices);
        if (!refused_) profile.devices.push_back(read_device(reader.get_message()));
        return;
      case tag_and_type(10, pbf_wire_type::length_delimited):
        require(profile.interfaces.size() < kMaxInterfaces);
        if (!refused_) profile.interfaces.push_back(read_interface(reader.get_message()));
        return;
      case tag_and_type(11, pbf_wire_type::varint):
        return read_port(reader.get_uint32(), profile.pairing_port);
      case tag_and_type(12, pbf_wire_type::length_delimited):
        require(beacon_.known.size() < kMaxKnown);
        return read_address(reader, beacon_.known);
      default:
        reader.skip();
    }
  }

  void read_kind(std::int32_t number) {
    require(number >= 0 && number <= 2);
    if (!refused_) beacon_.kind = static_cast<Beacon::Kind>(number);
  }

  void read_port(std::uint32_t number, std::uint16_t& port) {
    require(number <= UINT16_MAX);
    port = static_cast<std::uint16_t>(number);
  }

  void read_address(pbf_reader& reader, std::vector<IpAddress>& addresses) {
    const auto view = reader.get_view();
    const auto address = IpAddress::from_bytes(std::as_bytes(std::span(view.data(), view.size())));
    require(address && address->is_unicast());
    if (!refused_) addresses.push_back(*address);
  }

  Device read_device(pbf_reader reader) {
    Device device;
    while (!refused_ && reader.next()) {
      switch (reader.tag_and_type()) {
        case tag_and_type(1, pbf_wire_type::length_delimited):
          device.kind = text(reader, kMaxLabelBytes);
          break;
        case tag_and_type(2, pbf_wire_type::varint):
          device.cores = reader.get_uint32();
          break;
        case tag_and_type(3, pbf_wire_type::varint):
          device.memory_bytes = reader.get_uint64();
          break;
        case tag_and_type(4, pbf_wire_type::varint):
          device.free_memory_bytes = reader.get_uint64();
          break;
        case tag_and_type(5, pbf_wire_type::length_delimited):
          device.simd = text(reader, kMaxLabelBytes);
          break;
        default:
          reader.skip();
      }
    }
    return device;
  }

  NetworkInterface read_interface(pbf_reader reader) {
    NetworkInterface interface;
    while (!refused_ && reader.next()) {
      switch (reader.tag_and_type()) {
        case tag_and_type(1, pbf_wire_type::length_delimited):
          interface.name = text(reader, kMaxLabelBytes);
          break;
        case tag_and_type(2, pbf_wire_type::length_delimited): {
          require(++addresses_ <= kMaxAddresses);
          read_address(reader, interface.addresses);
          break;
        }
        default:
          reader.skip();
      }
    }
    return interface;
  }

  Beacon beacon_;
  std::size_t addresses_ = 0;
  bool refused_ = false;
};

}  // namespace

Profile limited(Profile profile) {
  profile.name = limited_text(profile.name, kMaxNameBytes);
  profile.version = limited_text(profile.version, kMaxLabelBytes);
  profile.group = limited_text(profile.group, kMaxNameBytes);
  if (profile.devices.size() > kMaxDevices) profile.devices.resize(kMaxDevices);
  for (Device& device : profile.devices) {
    device.kind = limited_text(device.kind, kMaxLabelBytes);
    device.simd = limited_text(device.simd, kMaxLabelBytes);
  }
  if (profile.interfaces.size() > kMaxInterfaces) profile.interfaces.resize(kMaxInterfaces);
  std::size_t room = kMaxAddresses;
  for (NetworkInterface& interface : profile.interfaces) {
    interface.name = limited_text(interface.name, kMaxLabelBytes);
    std::erase_if(interface.addresses, [](const IpAddress& address) { return !address.is_unicast(); });
    interface.addresses.resize(std::min(interface.addresses.size(), room));
    room -= interface.addresses.size();
  }
  return profile;
}

std::string encode_beacon(const Beacon& beacon) {
  std::string datagram(kPrefix);
  pbf_writer writer(datagram);
  write(writer, beacon);
  return datagram;
}

std::string encode_padded(const Beacon& beacon, std::size_t bytes) {
  std::string datagram = encode_beacon(beacon);
  const std::size_t length = std::min(bytes, kMaxBeaconBytes);
  if (length > datagram.size() + kPaddingHead)
    pbf_writer(datagram).add_bytes(kPaddingTag, std::string(length - datagram.size() - kPaddingHead, '\0'));
  return datagram;
}

std::optional<Beacon> decode_beacon(ConstBytes datagram) {
  if (datagram.size() > kMaxBeaconBytes || datagram.size() < kPrefix.size()) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(datagram.data()), datagram.size());
  if (text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  // protozero reports malformed input by exceptions, which are caught here.
  try {
    return Decoder().read(pbf_reader(text.data() + kPrefix.size(), text.size() - kPrefix.size()));
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

}  // namespace ringlet::discovery
