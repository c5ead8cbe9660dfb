import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { Platform, Socket } from '../platform.js';

/**
 * What a module needs from JavaScript; wasm/cpp/imports.js explains each. Views are of the module's memory, and valid only during the call.
 */
export interface Host {
  now(): number;
  setTimer(callback: () => void, milliseconds: number): unknown;
  clearTimer(timer: unknown): void;
  openSocket(url: string): Socket;
  random(bytes: Uint8Array): void;
  sign(key: Uint8Array, message: Uint8Array): Uint8Array;
  publicKey(secret: Uint8Array): Uint8Array;
  agree(secret: Uint8Array, peer: Uint8Array): Uint8Array | undefined;
  seal(key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, place: Uint8Array): void;
  open(key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, sealed: Uint8Array, out: Uint8Array): boolean;
  completed(ticket: number, code: number, rank: number, value: number, text: string): void;
  seat(world: number, rank: number, size: number, guests: number, present: number): void;
  knocking(world: number): void;
  failed(world: number, code: number, rank: number, text: string): void;
}

/** The part of a host that receives news from the module. */
export type Listener = Pick<Host, 'completed' | 'seat' | 'knocking' | 'failed'>;

/** Makes a host from the functions of the platform. `secure` means that its sockets are wss. */
export function makeHost(platform: Platform, secure: boolean, listener: () => Listener): Host {
  return {
    now: () => performance.now(),
    setTimer: (callback, milliseconds) => setTimeout(callback, milliseconds),
    clearTimer: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
    openSocket: (url) => platform.openSocket(secure ? url.replace(/^ws:/, 'wss:') : url),
    random: fillRandom,
    // crypto.subtle is not used, because pages on plain http do not have it.
    sign: (key, message) => hmac(sha256, key, message),
    publicKey: (secret) => x25519.getPublicKey(secret),
    agree,
    seal: (key, nonce, associated, place) => void chacha20poly1305(key, nonce, associated).encrypt(place.subarray(0, -16), place),
    open,
    completed: (...news) => listener().completed(...news),
    seat: (...news) => listener().seat(...news),
    knocking: (...news) => listener().knocking(...news),
    failed: (...news) => listener().failed(...news),
  };
}

/** The functions that agree() and open() call throw on some inputs that the other side may send. */
function agree(secret: Uint8Array, peer: Uint8Array): Uint8Array | undefined {
  try {
    return x25519.getSharedSecret(secret, peer);
  } catch {
    return undefined;
  }
}

function open(key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, sealed: Uint8Array, out: Uint8Array): boolean {
  try {
    chacha20poly1305(key, nonce, associated).decrypt(sealed, out);
    return true;
  } catch {
    return false;
  }
}

function fillRandom(bytes: Uint8Array): void {
  // getRandomValues() fills at most 65,536 bytes at a time, and does not accept memory that is shared or may grow.
  for (let from = 0; from < bytes.length; from += 65_536) {
    bytes.set(crypto.getRandomValues(new Uint8Array(Math.min(65_536, bytes.length - from))), from);
  }
}
