#include <catch2/catch.hpp>
#include <ringlet/dtype.hpp>
#include <ringlet/error.hpp>
#include <type_traits>

using namespace ringlet;

TEST_CASE("a number is a dtype or an operation, or is known not to be one") {
  for (std::size_t number = 0; number < 256; ++number) {
    CAPTURE(number);
    const auto dtype = static_cast<DType>(number);
    CHECK(is_valid(dtype) == (number < kDTypeCount));
    CHECK((name_of(dtype) != "unknown") == is_valid(dtype));
    if (is_valid(dtype)) CHECK(find_dtype(name_of(dtype)) == dtype);
    const auto op = static_cast<ReduceOp>(number);
    CHECK(is_valid(op) == (number < kReduceOpCount));
    CHECK((name_of(op) != "unknown") == is_valid(op));
  }
  CHECK_FALSE(find_dtype("unknown"));
}

TEST_CASE("each code is thrown as its class, with rank and text") {
  CHECK_NOTHROW(throw_if_failed(Status()));
  const auto thrown = [](Errc code, auto wanted) {
    using Wanted = typename decltype(wanted)::type;
    try {
      throw_if_failed(Status(code, "what went wrong", 2));
    } catch (const Wanted& error) {
      return error.status().code() == code && error.status().rank() == 2 && error.status().text() == "what went wrong";
    } catch (const Error&) {
    }
    return false;
  };
  CHECK(thrown(Errc::invalid_argument, std::type_identity<InvalidArgument>()));
  CHECK(thrown(Errc::mismatch, std::type_identity<MismatchError>()));
  CHECK(thrown(Errc::peer_lost, std::type_identity<PeerLost>()));
  CHECK(thrown(Errc::timed_out, std::type_identity<Timeout>()));
  CHECK(thrown(Errc::protocol_error, std::type_identity<ProtocolError>()));
  CHECK(thrown(Errc::cancelled, std::type_identity<Cancelled>()));
  CHECK(thrown(Errc::io_error, std::type_identity<IoError>()));
}
