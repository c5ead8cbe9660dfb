// The functions that a Ringlet module needs from JavaScript. The factory's argument has a `host`:
//
//   now(): number                        milliseconds on a clock that never goes back: performance.now()
//   setTimer(callback, milliseconds)     setTimeout and clearTimeout
//   clearTimer(timer)
//   openSocket(url): WebSocket           binaryType "arraybuffer", or whatever gives ArrayBuffers or views of bytes; send() takes a view
//                                        and has copied it when it returns; onopen, onmessage, onclose and onerror are set here
//   random(bytes: Uint8Array)            fills the view with bytes that nobody can foretell
//   sign(key: Uint8Array, message: Uint8Array): Uint8Array      HMAC-SHA-256
//   publicKey(secret: Uint8Array): Uint8Array                   X25519
//   agree(secret: Uint8Array, peer: Uint8Array): Uint8Array | undefined     X25519; nothing where the result is zero
//   seal(key, nonce, associated, place: Uint8Array): void       ChaCha20-Poly1305 of all but the last 16 bytes of `place`, in its place
//   open(key, nonce, associated, sealed, out: Uint8Array): boolean          the reverse; `out` is apart, or where `sealed` begins
//   completed(ticket, code, rank, value, text)                  exports.hpp; code 0 is success, `value` a handle or 0
//   seat(world, rank, size, guests, present)                    while joining: this rank's place, and how many ranks are there
//   knocking(world)                                             while joining: an elastic group runs, and will admit this rank
//   failed(world, code, rank, text)                             the world has ended by itself, once, also where nothing was pending
//
// Views of the module's memory are valid during the call only. The host's callbacks may call exports.

mergeInto(LibraryManager.library, {
  // Maps the module's number of a socket to the socket and to the bytes that the module has not taken yet.
  $ringletSockets: 'new Map()',

  $ringletTellClosed: function (id, clean, code, reason) {
    const room = lengthBytesUTF8(reason) + 1;
    const text = _ringlet_allocate(room);
    stringToUTF8(reason, text, room);
    _ringlet_on_socket_closed(id, clean ? 1 : 0, code, text);
    _ringlet_release(text);
  },

  ringlet_socket_open__deps: ['$ringletSockets', '$ringletTellClosed'],
  ringlet_socket_open: function (id, url) {
    const entry = { socket: undefined, chunks: [], offset: 0 };
    ringletSockets.set(id, entry);
    let socket;
    try {
      socket = Module['host'].openSocket(UTF8ToString(url));
    } catch (error) {
      queueMicrotask(() => ringletTellClosed(id, false, 0, String(error.message)));
      return;
    }
    entry.socket = socket;
    socket.onopen = () => _ringlet_on_socket_opened(id);
    socket.onerror = () => {};
    socket.onclose = (event) => ringletTellClosed(id, event.wasClean, event.code, event.reason);
    socket.onmessage = (event) => {
      const data = event.data;
      if (typeof data === 'string') {
        ringletTellClosed(id, false, 1003, 'the other side sent text');
        return;
      }
      const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : data;
      if (bytes.length === 0) return;
      entry.chunks.push(bytes);
      _ringlet_on_socket_message(id, bytes.length);
    };
  },

  ringlet_socket_send__deps: ['$ringletSockets'],
  ringlet_socket_send: function (id, from, bytes) {
    ringletSockets.get(id).socket.send(HEAPU8.subarray(from, from + bytes));
  },

  ringlet_socket_buffered__deps: ['$ringletSockets'],
  ringlet_socket_buffered: function (id) {
    return ringletSockets.get(id).socket.bufferedAmount;
  },

  ringlet_socket_take__deps: ['$ringletSockets'],
  ringlet_socket_take: function (id, to, bytes) {
    const entry = ringletSockets.get(id);
    while (bytes > 0) {
      const chunk = entry.chunks[0];
      const part = Math.min(bytes, chunk.length - entry.offset);
      HEAPU8.set(chunk.subarray(entry.offset, entry.offset + part), to);
      to += part;
      bytes -= part;
      entry.offset += part;
      if (entry.offset === chunk.length) {
        entry.chunks.shift();
        entry.offset = 0;
      }
    }
  },

  // The browser sends what is still buffered before it closes.
  ringlet_socket_finish__deps: ['$ringletSockets'],
  ringlet_socket_finish: function (id) {
    ringletSockets.get(id).socket.close(1000);
  },

  ringlet_socket_close__deps: ['$ringletSockets'],
  ringlet_socket_close: function (id) {
    const socket = ringletSockets.get(id).socket;
    ringletSockets.delete(id);
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(1000);
  },

  ringlet_now: function () {
    return Module['host'].now();
  },

  $ringletTimer: '{}',
  ringlet_set_timer__deps: ['$ringletTimer'],
  ringlet_set_timer: function (milliseconds) {
    ringletTimer.handle = Module['host'].setTimer(() => _ringlet_on_timer(), milliseconds);
  },
  ringlet_clear_timer__deps: ['$ringletTimer'],
  ringlet_clear_timer: function () {
    Module['host'].clearTimer(ringletTimer.handle);
  },
  ringlet_turn_soon: function () {
    queueMicrotask(() => _ringlet_on_turn());
  },

  ringlet_random: function (out, bytes) {
    Module['host'].random(HEAPU8.subarray(out, out + bytes));
  },
  ringlet_sign: function (key, keyBytes, message, messageBytes, out) {
    const proof = Module['host'].sign(HEAPU8.subarray(key, key + keyBytes), HEAPU8.subarray(message, message + messageBytes));
    HEAPU8.set(proof, out);
  },

  ringlet_public_key: function (secret, out) {
    HEAPU8.set(Module['host'].publicKey(HEAPU8.subarray(secret, secret + 32)), out);
  },
  ringlet_agree: function (secret, peer, out) {
    const agreed = Module['host'].agree(HEAPU8.subarray(secret, secret + 32), HEAPU8.subarray(peer, peer + 32));
    if (agreed) HEAPU8.set(agreed, out);
    return agreed ? 1 : 0;
  },
  ringlet_seal: function (key, nonce, associated, associatedBytes, place, bytes) {
    const view = (from, length) => HEAPU8.subarray(from, from + length);
    Module['host'].seal(view(key, 32), view(nonce, 12), view(associated, associatedBytes), view(place, bytes + 16));
  },
  ringlet_open: function (key, nonce, associated, associatedBytes, sealed, bytes, out) {
    const view = (from, length) => HEAPU8.subarray(from, from + length);
    const right = Module['host'].open(
      view(key, 32),
      view(nonce, 12),
      view(associated, associatedBytes),
      view(sealed, bytes + 16),
      view(out, bytes),
    );
    return right ? 1 : 0;
  },

  ringlet_tell_completed: function (ticket, code, rank, value, text) {
    Module['host'].completed(ticket, code, rank, value, UTF8ToString(text));
  },
  ringlet_tell_seat: function (world, rank, size, guests, present) {
    Module['host'].seat(world, rank, size, guests, present);
  },
  ringlet_tell_knocking: function (world) {
    Module['host'].knocking(world);
  },
  ringlet_tell_failed: function (world, code, rank, text) {
    Module['host'].failed(world, code, rank, UTF8ToString(text));
  },
});
