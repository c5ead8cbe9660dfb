import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { Platform, Socket } from '../platform.js';

/** What a module asks of JavaScript; wasm/cpp/imports.js says what each means. Views are of the module's memory and good during a call. */
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
  failed(world: number, code: number, rank: number, text: string): void;
}

/** The news that a module tells, apart from what it asks. */
export type Listener = Pick<Host, 'completed' | 'seat' | 'failed'>;

/** What the platform has for a module. `secure`: its sockets are of wss. */
export function makeHost(platform: Platform, secure: boolean, listener: () => Listener): Host {
  return {
    now: () => performance.now(),
    setTimer: (callback, milliseconds) => setTimeout(callback, milliseconds),
    clearTimer: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
    openSocket: (url) => platform.openSocket(secure ? url.replace(/^ws:/, 'wss:') : url),
    random: fillRandom,
    // Not crypto.subtle, which pages on plain http do not have.
    sign: (key, message) => hmac(sha256, key, message),
    publicKey: (secret) => x25519.getPublicKey(secret),
    agree,
    seal: (key, nonce, associated, place) => void chacha20poly1305(key, nonce, associated).encrypt(place.subarray(0, -16), place),
    open,
    completed: (...news) => listener().completed(...news),
    seat: (...news) => listener().seat(...news),
    failed: (...news) => listener().failed(...news),
  };
}

/** Both of these throw at what the other side may have sent. */
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
  // At most 65,536 bytes at a time are given, and none into memory that is shared or may grow.
  for (let from = 0; from < bytes.length; from += 65_536) {
    bytes.set(crypto.getRandomValues(new Uint8Array(Math.min(65_536, bytes.length - from))), from);
  }
}
