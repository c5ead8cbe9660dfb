// Worlds whose ranks are given and whose links are dialled one by one: what the browser's loop and links do, without a meeting.
#include "wasm/cpp/browser_world.hpp"
#include "wasm/cpp/export.hpp"
#include "wasm/cpp/registry.hpp"

using namespace ringlet;
using browser::registry;

/// A world of `size` ranks, as this one of them; its handle.
RINGLET_EXPORT int32_t test_world(int32_t rank, int32_t size, int32_t timeout_ms) {
  WorldOptions options = browser::world_options();
  options.rank = rank;
  options.size = size;
  options.operation_timeout = Duration::milliseconds(timeout_ms);
  const int32_t handle = registry().add_world();
  registry().find_world(handle)->make_core(options);
  return handle;
}

/// Dials what stands for the link with `peer`; completes when the world has it.
RINGLET_EXPORT void test_dial(int32_t ticket, int32_t world, int32_t peer, int32_t port) {
  browser::BrowserWorld* const found = registry().find_world(world);
  found->network().dial(
      {"127.0.0.1", static_cast<std::uint16_t>(port)}, Duration::seconds(10), [ticket, found, peer](Result<std::unique_ptr<Link>> link) {
        if (link.ok()) {
          struct Nobody final : SessionOwner {
            PayloadSink* on_frame(Session&, const FrameHeader&) override { return nullptr; }
            void on_session_failed(Session&, const Status&) override {}
            void on_session_ended(Session&) override {}
          };
          static Nobody nobody;
          found->core()->adopt(std::make_unique<Session>(std::move(link).value(), browser::loop(), nobody, SessionOptions{}), peer);
        }
        browser::tell_completed(ticket, link.status());
      });
}
