#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <ringlet/error.hpp>
#include <span>
#include <stdexcept>

#include "core/base/printable.hpp"
#include "native/environment.hpp"
#include "tools/command/embedded_page.hpp"
#include "tools/command/join_links.hpp"
#include "tools/command/launch_line.hpp"
#include "tools/command/page_folder.hpp"
#include "tools/command/qr_code.hpp"
#include "tools/launch/coordinator_socket.hpp"
#include "tools/launch/launcher.hpp"
#include "tools/launch/standard_error.hpp"
#include "transport/unique_fd.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::command {

namespace {

constexpr char kServeFooter[] = R"(Example:
  ringlet serve --ranks 2 --browsers 2 -- ./train --epochs 3
  ringlet serve --elastic 1:2 --browsers 2 -- ./train --epochs 3

Prints a link, and a QR code of it, that phones and computers on the same network open in a browser; when the wanted number is there,
all train together. From then on browsers come and go: those that come later join at the next step, and where one goes, or a rank is
lost, the others go on, if PROGRAM can (docs/elastic.md); with --no-elastic the job ends then. With --elastic MIN:MAX ranks that fail
are started again, as by `ringlet launch`; bounds are for ranks, not for browsers.

The link holds the group's token: whoever has it may join. It is taken from RINGLET_TOKEN or RINGLET_TOKEN_FILE, or made afresh. The ranks
get what `ringlet launch` gives them, and RINGLET_GUESTS, RINGLET_LISTEN, RINGLET_TOKEN and RINGLET_CONNECT_TIMEOUT_MS.
A `ringlet` that was built without the trainer's page (`wasm/build` makes it, before the build) needs --page.
Exit codes are those of `ringlet launch`.)";

constexpr int kMaxGuests = 256;

struct ServeLine {
  LaunchLine launch;
  std::optional<std::string> page;
  std::optional<int> ranks;
  double wait_seconds = 3600;
  bool qr = false;
  bool no_elastic = false;
};

void declare(CLI::App& app, ServeLine& line) {
  launch::LaunchOptions& options = line.launch.options;
  options.guests = 1;
  options.listen_at = {"0.0.0.0", 7000};
  app.footer(kServeFooter);
  app.add_option("-n,--ranks", line.ranks, "How many ranks to start on this machine; default: MAX of --elastic, else 1");
  app.add_option("-b,--browsers", options.guests, "How many browser tabs to wait for")->capture_default_str();
  app.add_option("-p,--port", options.listen_at.port, "Where rank 0 listens; 0: any port that is free")->capture_default_str();
  app.add_option("--host", options.listen_at.host, "The numeric address to listen on; 0.0.0.0: all of this machine's")
      ->capture_default_str();
  app.add_option("--page", line.page, "Serve this folder's files instead of the trainer's page")->type_name("DIR");
  app.add_option("--wait", line.wait_seconds, "Seconds to wait for all ranks")->capture_default_str();
  app.add_flag("--no-elastic", line.no_elastic, "Take nobody once all are there, and end the job when a browser or a rank is lost");
  app.add_flag("--qr", line.qr, "Print the QR code even where no terminal shows it");
  declare_launch_options(app, line.launch);
  declare_elastic_option(app, line.launch);
}

/// A group with browsers is elastic unless it is told otherwise.
std::optional<std::string> choose_ranks(ServeLine& line) {
  LaunchLine& launch = line.launch;
  if (line.no_elastic && launch.elastic) return "--no-elastic and --elastic: give one of them";
  if (!line.no_elastic && !launch.elastic) launch.elastic.emplace();
  RankBounds bounds;
  if (auto mistake = convert_elastic(launch, bounds)) return mistake;
  const bool bounded = launch.elastic && !launch.elastic->empty();
  launch.options.world_size = line.ranks.value_or(bounded ? bounds.most : 1);
  if (auto mistake = check_ranks("-n", launch.options.world_size)) return mistake;
  return check_bounds(launch, bounds, launch.options.world_size);
}

/// Packs the folder of --page, or returns what is wrong with it. Throws `std::runtime_error` where the system fails to read it.
std::optional<std::string> pack_folder(const std::string& folder, std::vector<std::byte>& page) {
  try {
    page = pack_page_folder(folder);
    return std::nullopt;
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().empty() ? folder : error.path1().string();
    throw std::runtime_error(fmt::format("--page: '{}' cannot be read: {}", printable(path), error.code().message()));
  } catch (const std::runtime_error& error) {
    return fmt::format("--page: {}", error.what());
  }
}

std::vector<std::byte> trainers_page() {
  const auto page = embedded_page();
  if (page.empty())
    throw std::runtime_error(
        "this `ringlet` was built without the trainer's page; build the page first (wasm/build), then build `ringlet` again, or serve a "
        "folder of your own with --page DIR");
  return {page.begin(), page.end()};
}

/// Returns an open file without a name that holds `bytes`.
UniqueFd file_of(std::span<const std::byte> bytes) {
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, CloseFile> file(std::tmpfile());
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() && std::fflush(file.get()) == 0;
  // CLOEXEC keeps it from all processes but rank 0, which inherits it.
  UniqueFd copy(written ? ::fcntl(::fileno(file.get()), F_DUPFD_CLOEXEC, 3) : -1);
  if (!copy) throw std::runtime_error(fmt::format("cannot keep the page in a temporary file: {}", std::strerror(errno)));
  return copy;
}

/// The value that RINGLET_ENCRYPT will have for the ranks; browsers have to do the same. Empty: unset.
std::string encryption_of(const launch::LaunchOptions& options) {
  std::string setting = native::process_variable("RINGLET_ENCRYPT").value_or("");
  for (const job::Variable& variable : options.job.start.environment)
    if (variable.name == "RINGLET_ENCRYPT") setting = variable.value;
  return setting;
}

void invite(const launch::LaunchOptions& options, int port, const std::string& token, bool with_code) {
  const auto hosts = reachable_hosts(options.listen_at.host, uv::list_interfaces());
  const std::string best = join_link(hosts.front(), port, token, encryption_of(options));
  if (with_code) launch::print_error(qr_code(best, ::isatty(STDERR_FILENO) == 1));
  launch::print_error("ringlet serve: waiting for {} browser{}; open\n", options.guests, options.guests == 1 ? "" : "s");
  for (const std::string& host : hosts) launch::print_error("  {}\n", join_link(host, port, token, encryption_of(options)));
}

}  // namespace

int run_serve(Arguments arguments) {
  ServeLine line;
  launch::LaunchOptions& options = line.launch.options;
  CLI::App app("Runs PROGRAM as ranks on this machine that browsers join:\n  ringlet serve [OPTIONS] -- PROGRAM [ARGS...]",
               "ringlet serve");
  declare(app, line);
  if (const auto over = parse_program_line(app, arguments, "-b 2 -- ./train", line.launch)) return *over;
  Duration wait;
  std::optional<std::string> mistake = choose_ranks(line);
  if (!mistake) mistake = convert_launch_line(line.launch);
  if (!mistake && (options.guests < 1 || options.guests > kMaxGuests))
    mistake = fmt::format("--browsers {}: the number of browsers must be from 1 to {}; `ringlet launch` does without", options.guests,
                          kMaxGuests);
  if (!mistake && options.listen_at.port > 65535) mistake = fmt::format("--port {}: a port is from 0 to 65535", options.listen_at.port);
  if (!mistake) mistake = convert_seconds("--wait", line.wait_seconds, wait);
  if (!mistake) mistake = find_secret("serve", options);
  if (!mistake && wait.whole_milliseconds() == 0)
    mistake = fmt::format("--wait {}: give some time for the browsers to come", line.wait_seconds);
  std::vector<std::byte> packed;
  if (!mistake && line.page) mistake = pack_folder(*line.page, packed);
  if (mistake) return usage_error("serve", *mistake);

  const std::string token = choose_token();
  const UniqueFd page = file_of(line.page ? std::move(packed) : trainers_page());
  options.message_prefix = "ringlet serve";
  options.page_fd = page.get();
  // The user's --env stands behind these variables, and holds.
  std::vector<job::Variable>& environment = options.job.start.environment;
  environment.insert(environment.begin(),
                     {{"RINGLET_TOKEN", token}, {"RINGLET_CONNECT_TIMEOUT_MS", std::to_string(wait.whole_milliseconds())}});
  if (line.no_elastic) environment.insert(environment.begin(), {"RINGLET_ELASTIC", "off"});
  const bool with_code = line.qr || ::isatty(STDERR_FILENO) == 1;
  UniqueFd page_socket;
  if (!line.no_elastic) {
    auto opened = launch::open_coordinator_socket(options.listen_at);
    if (!opened.ok()) {
      launch::print_error("ringlet serve: {}\n", opened.status().text());
      return 1;
    }
    page_socket = std::move(opened).value();
    options.page_socket = page_socket.get();
  }
  options.on_listening = [options, token, with_code, page = page_socket.get()](int port) {
    invite(options, page < 0 ? port : uv::to_address(uv::local_address(page)).port, token, with_code);
  };
  return run_launch_line("serve", line.launch, [&] { return launch::launch(options); });
}

}  // namespace ringlet::command
