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
    completed: (...news) => listener().completed(...news),
    seat: (...news) => listener().seat(...news),
    failed: (...news) => listener().failed(...news),
  };
}

function fillRandom(bytes: Uint8Array): void {
  // At most 65,536 bytes at a time are given, and none into memory that is shared or may grow.
  for (let from = 0; from < bytes.length; from += 65_536) {
    bytes.set(crypto.getRandomValues(new Uint8Array(Math.min(65_536, bytes.length - from))), from);
  }
}
