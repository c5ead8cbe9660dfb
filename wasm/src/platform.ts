import type { DedicatedWorker } from './dedicated_worker.js';
import type { Channel } from './remote/messages.js';
import type { WasmSource } from './wasm_source.js';

/** The part of WebSocket that is used. Messages are ArrayBuffers or views of bytes; send() must have copied the view when it returns. */
export interface Socket {
  readonly bufferedAmount: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: ArrayBuffer | Uint8Array | string }) => void) | null;
  onclose: ((event: { wasClean: boolean; code: number; reason: string }) => void) | null;
  onerror: ((event: never) => void) | null;
  send(bytes: Uint8Array): void;
  close(code?: number): void;
}

/** The differences between browsers and Node. */
export interface Platform {
  openSocket(url: string): Socket;
  /** Compiles the module; `undefined` stands for the package's own. */
  compile(source: WasmSource | undefined): Promise<WebAssembly.Module>;
  /** Starts the package's Worker. */
  startWorker(): Channel;
  /** Makes the channel to a Worker that the program has started. Throws `InvalidArgument` if it is none of this platform. */
  connect(worker: DedicatedWorker): Channel;
  /**
   * Calls the handler at each error that nobody catches, unless the program prevents its default, where nothing else would end the program
   * or tell anyone. Returns a function that ends this.
   */
  onUncaught(handler: () => void): () => void;
  /** The name of this side, for people, used if the caller gives none. */
  readonly name: string;
}
