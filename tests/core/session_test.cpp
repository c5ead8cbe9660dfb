#include "core/engine/session.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <functional>

#include "sim/sim_network.hpp"
#include "sim/sim_random.hpp"
#include "tests/core/seeds.hpp"

using namespace ringlet;

namespace {

/// Keeps records. Its clock goes on whenever it is read.
class TestTrace final : public Trace {
 public:
  Instant now() const override { return {++now_}; }
  std::uint32_t add_track(const std::string&) override { return 1; }
  void record(const TraceRecord& record) override { records.push_back(record); }
  void record(const ClockReading&) override {}

  std::vector<TraceRecord> records;

 private:
  mutable std::int64_t now_ = 0;
};

/// Takes as many bytes as the test says.
class TestLink final : public Link {
 public:
  explicit TestLink(std::vector<std::byte>& wire) : wire_(wire) {}
  void start(LinkUser& user) override { user_ = &user; }
  void wake() override {}
  void finish_sending() override {}
  std::string peer_name() const override { return "test"; }

  std::function<void()> on_given{};  // called when the link has been given bytes, before any of them leaves
  bool for_caches() const { return user_->sends_for_caches(); }

  /// Passes on at most `most` bytes, as much as the user has room for. Returns how many these were.
  std::size_t bring(ConstBytes bytes, std::size_t most) {
    std::size_t brought = 0;
    for (const Bytes part : user_->to_receive()) {
      const std::size_t count = std::min({part.size(), bytes.size() - brought, most - brought});
      std::memcpy(part.data(), bytes.data() + brought, count);
      brought += count;
    }
    if (brought > 0) user_->received(brought);
    return brought;
  }
  bool take(std::size_t most) {
    std::size_t taken = 0;
    const auto parts = user_->to_send();
    if (on_given) on_given();
    for (const ConstBytes part : parts) {
      const ConstBytes piece = part.first(std::min(part.size(), most - taken));
      wire_.insert(wire_.end(), piece.begin(), piece.end());
      taken += piece.size();
    }
    if (taken > 0) user_->sent(taken);
    return taken > 0;
  }
  void end() { user_->receive_ended(); }

 private:
  std::vector<std::byte>& wire_;
  LinkUser* user_ = nullptr;
};

/// Has frames whose bytes are the source's number; the frame's number is its sequence.
class Numbers final : public FrameSource {
 public:
  Numbers(std::uint16_t number, std::size_t frames, std::size_t bytes, bool for_caches = false)
      : number_(number), frames_(frames), payload_(bytes, std::byte(number)), for_caches_(for_caches) {}
  std::optional<OutgoingFrame> next_frame() override {
    if (next_ == frames_) return std::nullopt;
    FrameHeader header;
    header.kind = FrameKind::data;
    header.stream = number_;
    header.sequence = next_++;
    header.payload_bytes = static_cast<std::uint32_t>(payload_.size());
    return OutgoingFrame{header, payload_, for_caches_};
  }
  void frame_sent(const FrameHeader& header) override { in_order_ &= header.stream == number_ && header.sequence == left_++; }

  bool all_reported() const { return in_order_ && left_ == frames_; }

 private:
  const std::uint16_t number_;
  const std::size_t frames_;
  const std::vector<std::byte> payload_;
  const bool for_caches_;
  std::size_t next_ = 0, left_ = 0;
  bool in_order_ = true;
};

/// Has one frame, for which it needs so much of the early budget.
class Early final : public FrameSource {
 public:
  Early(Session& session, std::size_t record_bytes) : session_(session), cost_{0, record_bytes} {}
  std::optional<OutgoingFrame> next_frame() override {
    if (has_left_ || !session_.take_early_record(*this, cost_)) return std::nullopt;
    has_left_ = true;
    FrameHeader header;
    header.kind = FrameKind::data;
    return OutgoingFrame{header, {}, false};
  }
  void frame_sent(const FrameHeader&) override {}

  bool has_left() const { return has_left_; }

 private:
  Session& session_;
  const EarlyCost cost_;
  bool has_left_ = false;
};

struct Owner final : SessionOwner {
  PayloadSink* on_frame(Session&, const FrameHeader&) override { return nullptr; }
  void on_session_failed(Session&, const Status& status) override { failure = status; }
  void on_session_ended(Session&) override {}

  Status failure;
};

/// Has a place for its payload, unless it is to pass through consume().
class Placed final : public PayloadSink {
 public:
  Placed(std::size_t bytes, bool has_place) : payload(bytes), has_place_(has_place) {}
  Bytes direct() override { return has_place_ ? Bytes(payload).subspan(come_) : Bytes(); }
  void received_direct(std::size_t count) override { come_ += count; }
  std::size_t consume(ConstBytes bytes) override {
    std::copy(bytes.begin(), bytes.end(), payload.begin() + static_cast<std::ptrdiff_t>(come_));
    come_ += bytes.size();
    consumed += bytes.size();
    return bytes.size();
  }
  void frame_ended() override { ended = true; }

  std::vector<std::byte> payload;
  std::size_t consumed = 0;
  bool ended = false;

 private:
  const bool has_place_;
  std::size_t come_ = 0;
};

struct OwnerOfPlaces final : SessionOwner {
  PayloadSink* on_frame(Session&, const FrameHeader&) override { return &places.at(next++); }
  void on_session_failed(Session&, const Status&) override { failed = true; }
  void on_session_ended(Session&) override {}

  std::deque<Placed> places;
  std::size_t next = 0;
  bool failed = false;
};

/// A control frame that was queued when `wire_bytes` had left.
struct Control {
  std::vector<std::byte> payload;
  std::size_t wire_bytes;
};

}  // namespace

TEST_CASE("frames arrive whole and in their sources' order, and control overtakes what has not begun to leave") {
  for (const auto seed : test::seeds(300)) {
    CAPTURE(seed);
    SimRandom random(seed);
    // So few that there is room for control in each batch, or so many that there is not.
    const bool room_for_all = seed % 2 == 0;
    const std::size_t frames = room_for_all ? 7 : 50;
    SimWorld sim(seed);
    Owner owner;
    std::vector<std::byte> wire;
    auto made = std::make_unique<TestLink>(wire);
    TestLink& link = *made;
    Session session(std::move(made), sim.add_node().loop(), owner, {.batch_bytes = 1 + random.below(4000)});
    std::deque<Numbers> sources;
    for (std::uint16_t number = 0; number < 3; ++number) sources.emplace_back(number, frames, random.below(600));
    for (Numbers& source : sources) session.mark_ready(source);

    std::vector<Control> controls;
    const std::size_t most = 1 + random.below(random.below(2) != 0 ? 40 : 2000);
    for (bool sent = true; sent; sent = link.take(1 + random.below(most))) {
      if (random.below(8) != 0 || controls.size() == 40) continue;
      controls.push_back({std::vector<std::byte>(random.below(50), std::byte(random.below(256))), wire.size()});
      FrameHeader header;
      header.kind = FrameKind::control;
      header.sequence = controls.size() - 1;
      session.send_owned(header, controls.back().payload);
    }
    CHECK(std::all_of(sources.begin(), sources.end(), [](const Numbers& source) { return source.all_reported(); }));
    CHECK(session.unsent_owned() == 0);

    std::array<std::uint64_t, 3> next{};
    std::uint64_t next_control = 0;
    std::size_t at = 0;
    while (at < wire.size()) {
      FrameHeader header;
      REQUIRE(wire.size() - at >= kFrameHeaderBytes);
      REQUIRE(decode(wire.data() + at, header).ok());
      const bool is_control = header.kind == FrameKind::control;
      REQUIRE(header.sequence == (is_control ? next_control : next[header.stream]));
      const std::size_t end = at + kFrameHeaderBytes + header.payload_bytes;
      REQUIRE(end <= wire.size());
      const ConstBytes payload = ConstBytes(wire).subspan(at + kFrameHeaderBytes, header.payload_bytes);
      if (is_control) {
        const Control& control = controls[next_control++];
        CHECK(std::equal(payload.begin(), payload.end(), control.payload.begin(), control.payload.end()));
      } else {
        ++next[header.stream];
        CHECK(std::all_of(payload.begin(), payload.end(), [&](std::byte byte) { return byte == std::byte(header.stream); }));
        // This frame began before the next control frame was queued.
        if (room_for_all && next_control < controls.size()) CHECK(controls[next_control].wire_bytes > at);
      }
      at = end;
    }
    CHECK(next == std::array<std::uint64_t, 3>{frames, frames, frames});
    CHECK(next_control == controls.size());
  }
}

TEST_CASE("a batch is for the caches where one of its frames is") {
  SimWorld sim(0);
  Owner owner;
  std::vector<std::byte> wire;
  auto made = std::make_unique<TestLink>(wire);
  TestLink& link = *made;
  Session session(std::move(made), sim.add_node().loop(), owner, {.batch_bytes = 100});
  Numbers first(0, 3, 100), second(1, 1, 100, true);
  std::vector<bool> batches;
  link.on_given = [&] { batches.push_back(link.for_caches()); };
  session.mark_ready(first);
  session.mark_ready(second);
  while (link.take(1000)) {
  }
  CHECK(batches == std::vector<bool>{false, true, false, false, false});  // the last one is empty
}

TEST_CASE("a source that needs more of the early budget than is free does not keep the others from it") {
  SimWorld sim(0);
  Owner owner;
  std::vector<std::byte> wire;
  auto made = std::make_unique<TestLink>(wire);
  TestLink& link = *made;
  Session session(std::move(made), sim.add_node().loop(), owner, {});
  constexpr std::size_t kSmall = EarlyCost::kRecordBytes;
  session.set_early_limits({0, 2 * kSmall});
  Early first(session, kSmall), second(session, kSmall), large(session, 2 * kSmall), small(session, kSmall);
  for (Early* source : {&first, &second, &large, &small}) session.mark_ready(*source);
  const auto send = [&link] {
    while (link.take(1000)) {
    }
  };
  send();
  CHECK((first.has_left() && second.has_left() && !large.has_left() && !small.has_left()));
  session.give_back_early({0, kSmall});
  send();
  CHECK((!large.has_left() && small.has_left()));
  session.give_back_early({0, kSmall});
  send();
  CHECK_FALSE(large.has_left());
  session.give_back_early({0, kSmall});
  send();
  CHECK(large.has_left());
}

TEST_CASE("of long payloads behind each other those that have a place are never copied into it") {
  for (const auto seed : test::seeds(100)) {
    CAPTURE(seed);
    SimRandom random(seed);
    SimWorld sim(seed);
    OwnerOfPlaces owner;
    std::vector<std::byte> sent, wire;
    auto made = std::make_unique<TestLink>(sent);
    TestLink& link = *made;
    Session session(std::move(made), sim.add_node().loop(), owner, {});
    std::vector<bool> in_place;
    std::size_t end_of_short = 0;  // up to here the session may have filled its buffer with what follows
    for (int frame = 0; frame < 20; ++frame) {
      const bool is_long = random.below(6) != 0, has_place = random.below(2) != 0;
      FrameHeader header;
      header.kind = FrameKind::data;
      header.payload_bytes = static_cast<std::uint32_t>(is_long ? 8'192 + random.below(400'000) : 1 + random.below(8'000));
      std::array<std::byte, kFrameHeaderBytes> bytes;
      encode(header, bytes.data());
      wire.insert(wire.end(), bytes.begin(), bytes.end());
      in_place.push_back(is_long && has_place && wire.size() >= end_of_short + SessionOptions().receive_buffer_bytes);
      wire.resize(wire.size() + header.payload_bytes, std::byte(frame + 1));
      owner.places.emplace_back(header.payload_bytes, has_place);
      if (!is_long) end_of_short = wire.size();
    }
    const std::size_t most = random.below(2) != 0 ? wire.size() : 1'000 + random.below(100'000);
    for (ConstBytes left = wire; !left.empty();) {
      const std::size_t brought = link.bring(left, most);
      REQUIRE(brought > 0);
      REQUIRE_FALSE(owner.failed);
      left = left.subspan(brought);
    }
    for (std::size_t frame = 0; frame < owner.places.size(); ++frame) {
      const Placed& place = owner.places[frame];
      CHECK(place.ended);
      CHECK(std::all_of(place.payload.begin(), place.payload.end(), [&](std::byte byte) { return byte == std::byte(frame + 1); }));
      // The end of what came in pieces may be too short for a call of its own.
      if (in_place[frame]) CHECK(place.consumed < 8'192);
      if (in_place[frame] && most == wire.size()) CHECK(place.consumed == 0);
    }
  }
}

TEST_CASE("a control message goes to the owner that the session has when it is complete, though another had it when it began") {
  struct Listener final : SessionOwner {
    PayloadSink* on_frame(Session& session, const FrameHeader&) override { return session.gather_control(); }
    void on_control(Session&, ConstBytes payload) override { messages.emplace_back(payload.begin(), payload.end()); }
    void on_session_failed(Session&, const Status&) override {}
    void on_session_ended(Session&) override {}

    std::vector<std::vector<std::byte>> messages;
  };
  SimWorld sim(0);
  auto before = std::make_unique<Listener>();
  Listener after;
  std::vector<std::byte> sent;
  auto made = std::make_unique<TestLink>(sent);
  TestLink& link = *made;
  Session session(std::move(made), sim.add_node().loop(), *before, {});
  const std::vector<std::byte> payload(1'000, std::byte{7});
  FrameHeader header;
  header.kind = FrameKind::control;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  std::vector<std::byte> wire(kFrameHeaderBytes);
  encode(header, wire.data());
  wire.insert(wire.end(), payload.begin(), payload.end());

  CHECK(link.bring(wire, 500) == 500);
  session.set_owner(after);
  CHECK(before->messages.empty());
  before.reset();
  CHECK(link.bring(ConstBytes(wire).subspan(500), wire.size()) == wire.size() - 500);
  REQUIRE(after.messages.size() == 1);
  CHECK(after.messages.front() == payload);
}

TEST_CASE("a connection that ends without a goodbye is closed at once, and not kept as long as its world") {
  SimWorld sim(0);
  Owner owner;
  std::vector<std::byte> wire;
  auto made = std::make_unique<TestLink>(wire);
  TestLink& link = *made;
  Session session(std::move(made), sim.add_node().loop(), owner, {});
  link.end();
  CHECK(owner.failure.code() == Errc::peer_lost);
  CHECK(session.closed());
}

TEST_CASE("a segment is recorded as sent from before the link had any of it, though it leaves with others") {
  if (!kCanTrace) return;
  for (const std::size_t most : {1'000'000, 100}) {
    CAPTURE(most);
    SimWorld sim(0);
    Owner owner;
    std::vector<std::byte> wire;
    TestTrace trace;
    auto made = std::make_unique<TestLink>(wire);
    TestLink& link = *made;
    Session session(std::move(made), sim.add_node().loop(), owner, {.batch_bytes = 2000, .trace = &trace});
    Numbers source(0, 20, 300);
    session.mark_ready(source);
    std::vector<Instant> given;  // by frame, when the link first had it
    link.on_given = [&] {
      const std::size_t batch = wire.size() / (7 * (300 + kFrameHeaderBytes)) * 7;
      if (given.size() == batch) given.resize(std::min<std::size_t>(batch + 7, 20), trace.now());
    };
    while (link.take(most)) {
    }
    REQUIRE(source.all_reported());
    REQUIRE(trace.records.size() == 20);
    for (std::size_t frame = 0; frame < 20; ++frame) {
      const TraceRecord& record = trace.records[frame];
      CHECK(record.name == "send");
      CHECK(record.bytes == 300);
      CHECK(record.number == frame);
      CHECK(record.begin < given[frame]);
      CHECK(record.end > given[frame]);
      // The format lets others of a track only lie within each other.
      CHECK(record.overlaps);
    }
  }
}
