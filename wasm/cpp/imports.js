// What a module of Ringlet's asks of JavaScript. The factory's argument has a `host`:
//
//   now(): number                        milliseconds on a clock that never goes back: performance.now()
//   setTimer(callback, milliseconds)     setTimeout and clearTimeout
//   clearTimer(timer)
//   openSocket(url): WebSocket           binaryType "arraybuffer", or whatever gives ArrayBuffers or views of bytes; send() takes a view
//                                        and has copied it when it returns; onopen, onmessage, onclose and onerror are set here
//   random(bytes: Uint8Array)            fills the view with bytes that nobody can foretell
//   sign(key: Uint8Array, message: Uint8Array): Uint8Array      HMAC-SHA-256
//   completed(ticket, code, rank, value, text)                  exports.hpp; code 0 is success, `value` a handle or 0
//   seat(world, rank, size, guests, present)                    while joining: this rank's place, and how many ranks are there
//   failed(world, code, rank, text)                             the world has ended by itself, once, also where nothing was pending
//
// Views of the module's memory are valid during the call only. The host's callbacks may call exports.

mergeInto(LibraryManager.library, {
  $ringletSockets: new Map(),
  // Tells the module about one socket, and keeps what has come until the module takes it.
  $RingletSocket__deps: ['$ringletSockets', '$stringToUTF8', '$lengthBytesUTF8', 'malloc', 'free'],
  $RingletSocket: class {
    constructor(id, url) {
      this.chunks = [];
      this.offset = 0;
      this.socket = Module['host'].openSocket(url);
      this.socket.onopen = () => _ringlet_on_socket_opened(id);
      this.socket.onerror = () => {};
      this.socket.onclose = (event) => this.tell(id, event.wasClean, event.code, event.reason);
      this.socket.onmessage = (event) => {
        const data = event.data;
        if (typeof data === 'string') return this.tell(id, false, 1003, 'the peer sent text');
        const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : data;
        if (bytes.length === 0) return;
        this.chunks.push(bytes);
        _ringlet_on_socket_message(id, bytes.length);
      };
    }
    tell(id, clean, code, reason) {
      const room = lengthBytesUTF8(reason) + 1;
      const text = _malloc(room);
      stringToUTF8(reason, text, room);
      _ringlet_on_socket_closed(id, clean ? 1 : 0, code, text);
      _free(text);
    }
    take(to, bytes) {
      while (bytes > 0) {
        const chunk = this.chunks[0];
        const part = Math.min(bytes, chunk.length - this.offset);
        HEAPU8.set(chunk.subarray(this.offset, this.offset + part), to);
        to += part;
        bytes -= part;
        this.offset += part;
        if (this.offset === chunk.length) {
          this.chunks.shift();
          this.offset = 0;
        }
      }
    }
    // The module has forgotten the socket: nothing is told any more.
    close() {
      this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
      this.socket.close(1000);
    }
  },

  ringlet_socket_open__deps: ['$ringletSockets', '$RingletSocket'],
  ringlet_socket_open: (id, url) => ringletSockets.set(id, new RingletSocket(id, UTF8ToString(url))),
  ringlet_socket_send__deps: ['$ringletSockets'],
  ringlet_socket_send: (id, from, bytes) => ringletSockets.get(id).socket.send(HEAPU8.subarray(from, from + bytes)),
  ringlet_socket_buffered__deps: ['$ringletSockets'],
  ringlet_socket_buffered: (id) => ringletSockets.get(id).socket.bufferedAmount,
  ringlet_socket_take__deps: ['$ringletSockets'],
  ringlet_socket_take: (id, to, bytes) => ringletSockets.get(id).take(to, bytes),
  // Sends what is queued, then says goodbye.
  ringlet_socket_finish__deps: ['$ringletSockets'],
  ringlet_socket_finish: (id) => ringletSockets.get(id).socket.close(1000),
  ringlet_socket_close__deps: ['$ringletSockets'],
  ringlet_socket_close: (id) => {
    ringletSockets.get(id).close();
    ringletSockets.delete(id);
  },

  ringlet_now: () => Module['host'].now(),
  $ringletTimer: { handle: undefined },
  ringlet_set_timer__deps: ['$ringletTimer'],
  ringlet_set_timer: (milliseconds) => {
    ringletTimer.handle = Module['host'].setTimer(() => _ringlet_on_timer(), milliseconds);
  },
  ringlet_clear_timer__deps: ['$ringletTimer'],
  ringlet_clear_timer: () => Module['host'].clearTimer(ringletTimer.handle),
  ringlet_turn_soon: () => queueMicrotask(() => _ringlet_on_turn()),

  ringlet_random: (out, bytes) => Module['host'].random(HEAPU8.subarray(out, out + bytes)),
  ringlet_sign: (key, keyBytes, message, messageBytes, out) =>
    HEAPU8.set(Module['host'].sign(HEAPU8.subarray(key, key + keyBytes), HEAPU8.subarray(message, message + messageBytes)), out),

  ringlet_tell_completed: (ticket, code, rank, value, text) => Module['host'].completed(ticket, code, rank, value, UTF8ToString(text)),
  ringlet_tell_seat: (world, rank, size, guests, present) => Module['host'].seat(world, rank, size, guests, present),
  ringlet_tell_failed: (world, code, rank, text) => Module['host'].failed(world, code, rank, UTF8ToString(text)),
});
