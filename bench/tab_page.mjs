// The tab's side of tab_bandwidth.mjs: bundled into one script.
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import makeModule from 'ringlet-module';
import { measure } from './tab_client.mjs';

globalThis.measureTab = (options) =>
  measure(
    {
      openSocket: (url) => Object.assign(new WebSocket(url), { binaryType: 'arraybuffer' }),
      random: (bytes) => bytes.set(crypto.getRandomValues(new Uint8Array(bytes.length))),
      sign: (key, message) => hmac(sha256, key, message),
      makeModule: async (host) => makeModule({ host, wasmBinary: await (await fetch('/ringlet.wasm')).arrayBuffer() }),
    },
    options,
  );
