// A module as one rank, for tests. It has a host, the module's memory, and its operations as promises.
import { createHmac, randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { collectiveForms, f32, sum } from './tables.mjs';

const require = createRequire(new URL('../../wasm/package.json', import.meta.url));
export const { WebSocket, WebSocketServer } = require('ws');

// This is the package's own cryptography, against OpenSSL at the natives' end.
const noble = (file) => import(require.resolve(file));
const { chacha20poly1305 } = await noble('@noble/ciphers/chacha.js');
const { x25519 } = await noble('@noble/curves/ed25519.js');
const orNothing = (make) => {
  try {
    return make();
  } catch {
    return undefined;
  }
};

export class Failure extends Error {
  constructor(code, rank, text) {
    super(`${text} (code ${code}, rank ${rank})`);
    Object.assign(this, { code, rank });
  }
}

export class Rank {
  #tickets = new Map();
  #lastTicket = 0;
  seats = [];
  failures = [];

  /** `module` is the path of the .mjs, which is beside its .wasm. */
  static async make(module) {
    const rank = new Rank();
    const host = {
      now: () => performance.now(),
      setTimer: setTimeout,
      clearTimer: clearTimeout,
      openSocket: (url) => {
        const socket = new WebSocket(url, { perMessageDeflate: false });
        socket.binaryType = 'nodebuffer';
        return socket;
      },
      random: (bytes) => randomFillSync(bytes),
      sign: (key, message) => createHmac('sha256', key).update(message).digest(),
      publicKey: (secret) => x25519.getPublicKey(secret),
      agree: (secret, peer) => orNothing(() => x25519.getSharedSecret(secret, peer)),
      seal: (key, nonce, associated, place) => chacha20poly1305(key, nonce, associated).encrypt(place.subarray(0, -16), place),
      open: (key, nonce, associated, sealed, out) =>
        Boolean(orNothing(() => chacha20poly1305(key, nonce, associated).decrypt(sealed, out))),
      completed: (ticket, code, culprit, value, text) => {
        const { resolve, reject } = rank.#tickets.get(ticket);
        rank.#tickets.delete(ticket);
        if (code === 0) resolve(value);
        else reject(new Failure(code, culprit, text));
      },
      seat: (world, ...seat) => rank.seats.push(seat),
      knocking: () => {},
      failed: (world, code, culprit, text) => rank.failures.push(new Failure(code, culprit, text)),
    };
    const { default: factory } = await import(module);
    rank.module = await factory({ host, wasmBinary: readFileSync(module.replace(/\.mjs$/, '.wasm')) });
    return rank;
  }

  get pending() {
    return this.#tickets.size;
  }

  /** Calls an export that completes by its ticket. `rest` are the arguments after the ticket. */
  start(name, ...rest) {
    return this.#open((ticket) => this.module[`_${name}`](ticket, ...rest) ?? 0);
  }

  /** The same of an export that also returns a handle of what comes out. */
  startObject(name, ...rest) {
    let handle = 0;
    const done = this.#open((ticket) => {
      handle = this.module[`_${name}`](ticket, ...rest);
      return -Math.min(handle, 0);
    });
    return { handle, done };
  }

  /** Starts a collective by its name. A buffer is its place and its rows; counts are the places of numbers. */
  collective(
    group,
    form,
    { op = sum, dtype = f32, input = [0, 0], output = [0, 0], rowElements = 1, counts = 0, receiveCounts = 0, ...rest },
  ) {
    const { root = 0, stream = 0, timeout = 0 } = rest;
    const buffers = [...input, ...output, rowElements, counts, receiveCounts];
    return this.start('ringlet_collective', group, stream, timeout, collectiveForms.indexOf(form), op, dtype, ...buffers, root);
  }
  barrier(group, options = {}) {
    return this.collective(group, 'barrier', options);
  }

  /** Joins as a guest, and resolves to the group of all ranks. */
  join(port, token, name = 'Node', timeout = 60_000, host = '127.0.0.1', encrypt = -1) {
    const texts = [host, token, name].map((text) => this.text(text));
    return this.#open((ticket) => {
      this.world = this.module._ringlet_join(ticket, texts[0], port, texts[1], texts[2], timeout, timeout, encrypt);
      return -Math.min(this.world, 0);
    }).finally(() => this.free(...texts));
  }
  leave() {
    return this.start('ringlet_leave', this.world);
  }

  #open(begin) {
    return new Promise((resolve, reject) => {
      const ticket = ++this.#lastTicket;
      this.#tickets.set(ticket, { resolve, reject });
      const code = begin(ticket);
      if (code === 0) return;
      this.#tickets.delete(ticket);
      reject(this.failure(code));
    });
  }

  /** Calls an export that ends at once and returns a handle or minus a code. */
  call(name, ...rest) {
    const value = this.module[`_${name}`](...rest);
    if (value < 0) throw this.failure(-value);
    return value;
  }

  failure(code) {
    return new Failure(code, this.module._ringlet_error_rank(), this.module.UTF8ToString(this.module._ringlet_error_text()));
  }

  /** Allocates memory of the module and copies these bytes to it. A number allocates that many bytes. */
  put(bytes) {
    const count = typeof bytes === 'number' ? bytes : bytes.byteLength;
    const pointer = this.module._ringlet_allocate(count) >>> 0;
    if (typeof bytes !== 'number') this.module.HEAPU8.set(new Uint8Array(bytes.buffer, bytes.byteOffset, count), pointer);
    return pointer;
  }
  text(text) {
    return this.put(new TextEncoder().encode(`${text}\0`));
  }
  /** Returns a copy of the memory there, as an array of this type. */
  get(Type, pointer, count) {
    return new Type(this.module.HEAPU8.slice(pointer, pointer + count * Type.BYTES_PER_ELEMENT).buffer);
  }
  free(...pointers) {
    for (const pointer of pointers) this.module._ringlet_release(pointer);
  }
}
