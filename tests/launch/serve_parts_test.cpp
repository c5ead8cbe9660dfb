#include <arpa/inet.h>
#include <qrencode.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/temporary_directory.hpp"
#include "tools/command/join_links.hpp"
#include "tools/command/page_folder.hpp"
#include "tools/command/qr_code.hpp"
#include "transport/web/page_bundle.hpp"

using namespace ringlet;
using namespace ringlet::command;

namespace {

std::string text_of(ConstBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

uv::ListedInterface interface_at(const std::string& name, const std::vector<std::string>& addresses) {
  uv::ListedInterface interface{name, 1, name == "lo", {}};
  for (const std::string& text : addresses) {
    std::array<std::byte, 16> bytes{};
    const bool six = text.find(':') != std::string::npos;
    REQUIRE(::inet_pton(six ? AF_INET6 : AF_INET, text.c_str(), bytes.data()) == 1);
    interface.addresses.push_back(*IpAddress::from_bytes(ConstBytes(bytes).first(six ? 16 : 4)));
  }
  return interface;
}

std::string unzipped(ConstBytes zipped, std::size_t size) {
  std::string plain(size, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(zipped.data()));
  stream.avail_in = static_cast<uInt>(zipped.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.total_out == size);
  inflateEnd(&stream);
  return plain;
}

}  // namespace

TEST_CASE("hosts that others reach come first the likeliest") {
  const std::vector<uv::ListedInterface> addresses{
      interface_at("lo", {"127.0.0.1"}),     interface_at("docker0", {"172.17.0.1"}),
      interface_at("eth1", {"203.0.113.9"}), interface_at("wlan0", {"192.168.1.7", "fe80::1", "2001:db8::7"}),
      interface_at("eth2", {"169.254.3.4"}), interface_at("eth3", {"172.32.0.1"}),
      interface_at("eth0", {"172.31.0.1"}),  interface_at("br-0a1b", {"10.1.0.1"})};
  using Hosts = std::vector<std::string>;
  CHECK(reachable_hosts("0.0.0.0", addresses) == Hosts{"192.168.1.7", "172.31.0.1", "203.0.113.9", "172.32.0.1", "172.17.0.1", "10.1.0.1"});
  CHECK(reachable_hosts("::", addresses) == Hosts{"2001:db8::7"});
  CHECK(reachable_hosts("10.0.0.5", addresses) == Hosts{"10.0.0.5"});
  CHECK(reachable_hosts("0.0.0.0", {addresses.front()}) == Hosts{"127.0.0.1"});
  CHECK(reachable_hosts("::", {}) == Hosts{"::1"});
}

TEST_CASE("a link holds the token behind its fragment") {
  CHECK(join_link("10.0.0.7", 7000, "ab-cd_1.2~3") == "http://10.0.0.7:7000/#token=ab-cd_1.2~3");
  CHECK(join_link("10.0.0.7", 7000, "ab", "off") == "http://10.0.0.7:7000/#token=ab&encrypt=off");
  CHECK(join_link("fd00::1", 80, "a b&c=%/\xc3\xa4") == "http://[fd00::1]:80/#token=a%20b%26c%3D%25%2F%C3%A4");
}

TEST_CASE("a QR code's blocks are its modules") {
  const std::string text = "http://192.168.1.7:7000/#token=2k4x-abcd-efgh-jkmn-pqrs-tuvw-xyz2";
  const bool colours = GENERATE(false, true);
  std::string drawing = qr_code(text, colours);
  std::vector<std::string> rows;  // of the drawing's upper and lower halves: '#' where a block is drawn
  const auto starts = [&](const std::string& what) { return drawing.compare(0, what.size(), what) == 0; };
  for (rows.assign(2, ""); !drawing.empty();) {
    std::size_t used = 1;
    std::string& upper = rows[rows.size() - 2];
    std::string& lower = rows.back();
    const auto add = [&](char up, char down, std::size_t size) {
      upper += up;
      lower += down;
      used = size;
    };
    if (starts("\u2580"))
      add('#', ' ', 3);
    else if (starts("\u2584"))
      add(' ', '#', 3);
    else if (starts("\u2588"))
      add('#', '#', 3);
    else if (starts(" "))
      add(' ', ' ', 1);
    else if (starts("\x1b"))
      used = drawing.find('m') + 1;
    else if (starts("\n"))
      rows.insert(rows.end(), 2, "");
    drawing.erase(0, used);
  }
  QRcode* code = QRcode_encodeString(text.c_str(), 0, QR_ECLEVEL_L, QR_MODE_8, 1);
  REQUIRE(code != nullptr);
  const auto width = static_cast<std::size_t>(code->width);
  bool same = true;
  for (std::size_t row = 0; row < width; ++row)
    for (std::size_t column = 0; column < width; ++column)
      same = same && (rows[row + 2][column + 2] == '#') == (((code->data[row * width + column] & 1) != 0) == colours);
  CHECK(same);
  for (std::size_t column = 0; column < width + 4; ++column) CHECK((rows[0][column] == '#') == !colours);
  QRcode_free(code);
  CHECK(qr_code(std::string(5000, 'x'), colours).empty());
}

TEST_CASE("a folder is packed with all that is in it, but nothing hidden") {
  test::TemporaryDirectory directory;
  const std::filesystem::path root = directory.path();
  std::filesystem::create_directories(root / "parts/deep");
  std::filesystem::create_directories(root / ".hidden");
  std::ofstream(root / "index.html") << std::string(5000, 'i');
  std::ofstream(root / "parts/deep/worker.js") << "x";
  std::ofstream(root / "core.wasm") << std::string("\0asm", 4);
  std::ofstream(root / "strange.xyz");
  std::ofstream(root / ".secret") << "s";
  std::ofstream(root / ".hidden/file.txt") << "s";
  const auto page = web::PageBundle::unpack(pack_page_folder(root.string()));
  REQUIRE(page.ok());
  const auto find = [&](const char* path) { return page.value().find(path); };
  REQUIRE(find("/") != nullptr);
  CHECK(find("/") == find("/index.html"));
  CHECK(find("/")->content_type == "text/html; charset=utf-8");
  CHECK(text_of(find("/")->plain) == std::string(5000, 'i'));
  CHECK(unzipped(find("/")->gzip, 5000) == std::string(5000, 'i'));
  REQUIRE(find("/parts/deep/worker.js") != nullptr);
  CHECK(find("/parts/deep/worker.js")->content_type == "text/javascript; charset=utf-8");
  CHECK(find("/parts/deep/worker.js")->gzip.empty());
  CHECK(find("/core.wasm")->content_type == "application/wasm");
  CHECK(find("/strange.xyz")->content_type == "application/octet-stream");
  CHECK(find("/strange.xyz")->plain.empty());
  for (const char* path : {"/.secret", "/.hidden/file.txt", "/parts", "/parts/", "/../index.html"}) CHECK(find(path) == nullptr);
  std::ofstream(root / "gr\u00fcn & 100%.txt") << "u";
  CHECK(web::PageBundle::unpack(pack_page_folder(root.string())).value().find("/gr\u00fcn & 100%.txt") != nullptr);
  for (const char* name : {"ring", "line\nfeed", "gr\xfcn"}) {
    std::ofstream(root / name) << "x";
    // APFS takes no names that are no UTF-8.
    if (std::error_code error; !std::filesystem::exists(root / name, error)) continue;
    CHECK_THROWS_WITH(pack_page_folder(root.string()), Catch::Contains("browsers cannot ask for"));
    std::filesystem::remove(root / name);
  }
  CHECK_THROWS_WITH(pack_page_folder((root / "parts").string()), Catch::Contains("there is no index.html"));
}
