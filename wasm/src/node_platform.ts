import { readFile } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { WebSocket } from 'ws';
import { InvalidArgument } from './errors.js';
import type { DedicatedWorker } from './dedicated_worker.js';
import type { Platform, Socket } from './platform.js';
import type { Channel } from './remote/messages.js';
import { describe } from './tensors.js';
import type { WasmSource } from './wasm_source.js';

export const nodePlatform: Platform = {
  name: `Node on ${process.platform}`,
  openSocket(url: string): Socket {
    // The global WebSocket of newer Node versions is not used, because it copies each message once more.
    const socket = new WebSocket(url, { perMessageDeflate: false });
    socket.binaryType = 'nodebuffer';
    return socket as unknown as Socket;
  },
  async compile(source: WasmSource | undefined): Promise<WebAssembly.Module> {
    if (source instanceof WebAssembly.Module) return source;
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source as BufferSource);
    const url = (source as string | URL | undefined) ?? new URL('./ringlet.wasm', import.meta.url);
    const isRemote = /^https?:/.test(url.toString());
    return WebAssembly.compile(isRemote ? await (await fetch(url)).arrayBuffer() : await readFile(fileOf(url)));
  },
  // Node ends the thread itself, and with it the links.
  onUncaught: () => () => undefined,
  startWorker(): Channel {
    return nodeChannel(new Worker(new URL('./worker-node.js', import.meta.url)));
  },
  connect(worker: DedicatedWorker): Channel {
    if (worker instanceof Worker) return nodeChannel(worker);
    throw new InvalidArgument(
      `dedicatedWorker is ${describe(worker)}; give true, a Worker of node:worker_threads, or a function that makes one`,
    );
  },
};

/** Makes the starting thread's end of the channel to a Worker. */
export function nodeChannel(worker: Worker): Channel {
  return {
    post: (message, transfer) => worker.postMessage(message, [...transfer]),
    onMessage: (handler) => void worker.on('message', (message) => handler(message as never)),
    onFailure: (handler) => {
      worker.on('error', (error) => handler(error.message));
      worker.on('messageerror', (error) => handler(error.message));
      // Without an error: it has called process.exit(), or was terminated.
      worker.on('exit', (code) => handler(`it has ended with code ${code}`));
    },
    end: () => void worker.terminate(),
  };
}

function fileOf(url: string | URL): string | URL {
  return typeof url === 'string' && url.startsWith('file:') ? new URL(url) : url;
}
