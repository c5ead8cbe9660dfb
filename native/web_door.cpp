#include "native/web_door.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ringlet/error.hpp>
#include <utility>

#include "native/tell.hpp"

namespace ringlet::native {

namespace {

[[noreturn]] void refuse_page(const std::string& reason) {
  throw InvalidArgument({Errc::invalid_argument, "the page of RINGLET_PAGE_FD: " + reason});
}

}  // namespace

web::PageBundle read_page(const UniqueFd& file) {
  if (!file) return {};
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) refuse_page(std::strerror(errno));
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > web::PageBundle::kMaxPackedBytes)
    refuse_page(fmt::format("it must be a file of at most {} bytes; it is set by `ringlet serve`", web::PageBundle::kMaxPackedBytes));
  std::vector<std::byte> packed(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < packed.size()) {
    const ssize_t count = ::pread(file.get(), packed.data() + done, packed.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) refuse_page(count == 0 ? "it became shorter" : std::strerror(errno));
    done += static_cast<std::size_t>(count);
  }
  auto page = web::PageBundle::unpack(std::move(packed));
  if (!page.ok()) refuse_page(page.status().text());
  return std::move(page).value();
}

std::unique_ptr<web::WebFront> open_web_door(EventLoop& loop, IncomingLinks& incoming, web::PageBundle page, const WebConfig& config) {
  web::WebOptions options;
  options.upgrade.allowed_origins = config.allowed_origins;
  options.upgrade.page_port = config.page_port;
  options.upgrade.page_hosts = config.page_hosts;
  options.on_refused_origin = [allowed = config.allowed_origins](const std::string& origin) {
    std::vector<std::string> wanted = allowed;
    wanted.push_back(origin);
    tell(
        fmt::format("a page of {} was refused; if it is yours, let it join: `ringlet serve --env RINGLET_ORIGINS={}`; where you start the "
                    "ranks yourself, set that for all native ranks",
                    origin, fmt::join(wanted, ",")));
  };
  auto front = std::make_unique<web::WebFront>(loop, std::move(page), std::move(options),
                                               [&incoming](std::unique_ptr<Link> link) { incoming.receive_upgraded(std::move(link)); });
  incoming.set_on_other_protocol(
      [&front = *front](std::unique_ptr<Link> link, const IncomingLinks::FirstBytes& first) { front.receive(std::move(link), first); });
  return front;
}

}  // namespace ringlet::native
