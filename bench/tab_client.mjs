// The client of tab_bandwidth.mjs, in Node and in a tab: it sends bytes to a native rank and back, as messages of a world and without one.

const messageBytes = 256 << 10;
const highWater = 4 << 20;

/** Measures megabytes per second in both directions between this client and a bare WebSocket server. */
async function measureBare(platform, port, bytes, limit) {
  const socket = platform.openSocket(`ws://127.0.0.1:${port}/`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error('the bare server does not answer'));
  });
  const message = new Uint8Array(messageBytes);
  let done;
  let left = 0;
  socket.onmessage = ({ data }) => {
    left -= data.byteLength ?? 0;
    if (typeof data === 'string' || left <= 0) done();
  };
  const until = (awaited) =>
    new Promise((resolve) => {
      left = awaited;
      done = resolve;
    });
  const started = performance.now();
  const sent = until(Infinity);
  socket.send(JSON.stringify({ receive: bytes }));
  for (let at = 0; at < bytes; at += messageBytes) {
    while (socket.bufferedAmount >= limit) await new Promise((resolve) => setTimeout(resolve, 1));
    socket.send(message);
  }
  await sent;
  const turned = performance.now();
  const received = until(bytes);
  socket.send(JSON.stringify({ send: bytes }));
  await received;
  const ended = performance.now();
  socket.close();
  return { up: bytes / (turned - started) / 1e3, down: bytes / (ended - turned) / 1e3 };
}

/** Returns the functions of encrypted links, as wasm/src/core/host.ts has them, from those of the noble packages. */
export const encryptingHost = ({ chacha20poly1305, x25519 }) => ({
  publicKey: (secret) => x25519.getPublicKey(secret),
  agree: (secret, peer) => x25519.getSharedSecret(secret, peer),
  seal: (key, nonce, associated, place) => void chacha20poly1305(key, nonce, associated).encrypt(place.subarray(0, -16), place),
  open: (key, nonce, associated, sealed, out) => {
    chacha20poly1305(key, nonce, associated).decrypt(sealed, out);
    return true;
  },
});

/** Returns a module that has joined the world. */
async function join(platform, { port, encrypts }, token) {
  const tickets = new Map();
  let last = 0;
  const host = {
    ...platform,
    now: () => performance.now(),
    setTimer: (callback, milliseconds) => setTimeout(callback, milliseconds),
    clearTimer: (timer) => clearTimeout(timer),
    completed: (ticket, code, rank, value, text) => {
      const { resolve, reject } = tickets.get(ticket);
      tickets.delete(ticket);
      if (code === 0) resolve(value);
      else reject(new Error(text));
    },
    knocking: () => {},
    seat: () => {},
    failed: () => {},
  };
  const module = await platform.makeModule(host);
  const text = (value) => {
    const bytes = new TextEncoder().encode(`${value}\0`);
    const pointer = module._ringlet_allocate(bytes.length);
    module.HEAPU8.set(bytes, pointer);
    return pointer;
  };
  const start = (name, ...rest) =>
    new Promise((resolve, reject) => {
      tickets.set(++last, { resolve, reject });
      module[name](last, ...rest);
    });
  const group = await start('_ringlet_join', text('127.0.0.1'), port, text(token), text('bandwidth'), 0, 0, Number(encrypts));
  return { module, group, start };
}

async function measureRing({ module, group, start }, barrier, bytes, messages) {
  const values = module._ringlet_allocate(bytes);
  const shape = module._ringlet_allocate(4);
  new DataView(module.HEAPU8.buffer).setUint32(shape, bytes, true);
  const started = performance.now();
  const all = (name) => Promise.all(Array.from({ length: messages }, () => start(name, group, 0, 0, 1, values, shape, 1, 0)));
  await all('_ringlet_send');
  await start('_ringlet_collective', group, 0, 0, barrier, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
  const turned = performance.now();
  await all('_ringlet_receive');
  await start('_ringlet_collective', group, 0, 0, barrier, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
  const ended = performance.now();
  module._ringlet_release(values);
  module._ringlet_release(shape);
  const moved = bytes * messages;
  return { up: moved / (turned - started) / 1e3, down: moved / (ended - turned) / 1e3 };
}

/** Measures all in turns and returns one row for each turn. `barrier` is the number of that collective. */
export async function measure(platform, { plainPort, encryptedPort, barePort, token, barrier, bytes, messages, turns }) {
  const plain = await join(platform, { port: plainPort, encrypts: false }, token);
  const encrypted = await join(platform, { port: encryptedPort, encrypts: true }, token);
  const rows = [];
  for (let turn = 0; turn < turns; ++turn)
    rows.push({
      plain: await measureRing(plain, barrier, bytes, messages),
      encrypted: await measureRing(encrypted, barrier, bytes, messages),
      bare: await measureBare(platform, barePort, bytes * messages, highWater),
    });
  return rows;
}
