import type { Channel } from './remote/messages.js';
import type { WasmSource } from './wasm_source.js';

/** What is used of a WebSocket. Messages are ArrayBuffers or views of bytes; send() has copied the view when it returns. */
export interface Socket {
  readonly bufferedAmount: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: ArrayBuffer | Uint8Array | string }) => void) | null;
  onclose: ((event: { wasClean: boolean; code: number; reason: string }) => void) | null;
  onerror: ((event: never) => void) | null;
  send(bytes: Uint8Array): void;
  close(code?: number): void;
}

/** What differs between browsers and Node. */
export interface Platform {
  openSocket(url: string): Socket;
  /** Compiles the module; `undefined`: the package's own. */
  compile(source: WasmSource | undefined): Promise<WebAssembly.Module>;
  /** Starts the package's Worker. */
  startWorker(): Channel;
  /** For people, where the caller gives no name. */
  readonly name: string;
}
