#pragma once

#include <string>
#include <vector>

#include "tests/web/web_sim.hpp"

namespace ringlet::test {

/// A breach of RFC 6455, and the code with which the server closes where a message may have 1000 bytes.
struct Attack {
  std::string what;
  std::string bytes;
  unsigned code;
};

/// Returns the attacks that clients make after their upgrade.
inline std::vector<Attack> attacks() {
  const std::string unmasked = server_frame(kBinary, "abc");
  std::string overlong = frame(kBinary, std::string(126, 'x')), very_overlong = frame(kBinary, std::string(65536, 'x'));
  overlong[3] = 5;
  very_overlong[7] = 0;
  std::string negative = very_overlong;
  negative[2] = '\x80';
  std::string huge = very_overlong.substr(0, 14);
  huge[2] = '\x7f';
  const std::string part = frame(0x02, "RNGL");
  std::vector<Attack> list{
      {"not masked", unmasked, 1002},
      {"reserved bit 1", frame(0xc2, "x"), 1002},
      {"reserved bit 2", frame(0xa2, "x"), 1002},
      {"reserved bit 3", frame(0x92, "x"), 1002},
      {"continuation of nothing", frame(0x80, "x"), 1002},
      {"message in a message", part + frame(kBinary, "x"), 1002},
      {"text in a message", part + frame(kText, "x"), 1002},
      {"ping in fragments", frame(0x09, "x"), 1002},
      {"long ping", frame(kPing, std::string(126, 'x')), 1002},
      {"long close", frame(kClose, close_payload(1000, std::string(124, 'x'))), 1002},
      {"length in 2 bytes too many", overlong, 1002},
      {"length in 8 bytes too many", very_overlong, 1002},
      {"negative length", negative, 1002},
      {"huge length", huge, 1009},
      {"huge message", frame(0x02, std::string(900, 'x')) + frame(0x00, std::string(101, 'x')), 1009},
      {"text", frame(kText, "hello"), 1003},
      {"empty text", frame(kText, ""), 1003},
      {"text in fragments", frame(0x01, "h\xc3") + frame(kPing, "") + frame(0x80, "\xa4"), 1003},
      {"long text", frame(kText, std::string(5000, 'x')), 1009},
      {"wrong UTF-8", frame(kText, "\xff"), 1007},
      {"surrogate", frame(kText, "\xed\xa0\x80"), 1007},
      {"overlong UTF-8", frame(kText, "\xc0\xaf"), 1007},
      {"cut UTF-8", frame(kText, "\xe2\x82"), 1007},
      {"half a close code", frame(kClose, "\x03"), 1002},
      {"wrong UTF-8 in the reason", frame(kClose, close_payload(1000, "\xc3")), 1007},
      {"data after close", frame(kClose, close_payload(1000)) + frame(kBinary, "x"), 1002},
      {"close after close", frame(kClose, close_payload(1000)) + frame(kClose, close_payload(1000)), 1002},
  };
  for (const unsigned opcode : {3U, 4U, 5U, 6U, 7U, 0xbU, 0xcU, 0xdU, 0xeU, 0xfU})
    list.push_back({"opcode " + std::to_string(opcode), frame(0x80U | opcode, ""), 1002});
  for (const unsigned code : {0U, 999U, 1004U, 1005U, 1006U, 1015U, 1016U, 1100U, 2000U, 2999U, 5000U, 65535U})
    list.push_back({"close code " + std::to_string(code), frame(kClose, close_payload(code)), 1002});
  return list;
}

}  // namespace ringlet::test
