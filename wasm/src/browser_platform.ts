import { InvalidArgument } from './errors.js';
import type { DedicatedWorker } from './dedicated_worker.js';
import type { Platform, Socket } from './platform.js';
import type { Channel } from './remote/messages.js';
import { browserChannel } from './remote/worker_channel.js';
import { describe } from './tensors.js';
import type { WasmSource } from './wasm_source.js';

// The module is compiled only once, however many groups are joined.
const compiled = new Map<string, Promise<WebAssembly.Module>>();

export const browserPlatform: Platform = {
  name: 'a browser',
  openSocket(url: string): Socket {
    const socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    return socket as Socket;
  },
  compile(source: WasmSource | undefined): Promise<WebAssembly.Module> {
    if (source instanceof WebAssembly.Module) return Promise.resolve(source);
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source as BufferSource);
    const url = (source ?? new URL('./ringlet.wasm', import.meta.url)).toString();
    const known = compiled.get(url);
    if (known !== undefined) return known;
    const compiling = load(url);
    compiled.set(url, compiling);
    // After a failure, compiling may be tried again.
    compiling.catch(() => compiled.delete(url));
    return compiling;
  },
  onUncaught(handler: () => void): () => void {
    // On a page it may be another script's, and a person sees what goes on. A Worker has nothing but its program.
    if (typeof document !== 'undefined') return () => undefined;
    const types = ['error', 'unhandledrejection'] as const;
    // Waits for the program's own listeners.
    const hear = (event: Event): void => void setTimeout(() => event.defaultPrevented || handler());
    for (const type of types) addEventListener(type, hear);
    return () => {
      for (const type of types) removeEventListener(type, hear);
    };
  },
  startWorker(): Channel {
    return browserChannel(new Worker(new URL('./worker.js', import.meta.url), { type: 'module' }));
  },
  connect(worker: DedicatedWorker): Channel {
    if (worker instanceof Worker) return browserChannel(worker);
    throw new InvalidArgument(`dedicatedWorker is ${describe(worker)}; give true, a Worker, or a function that makes one`);
  },
};

async function load(url: string): Promise<WebAssembly.Module> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} cannot be loaded: ${response.status} ${response.statusText}`);
  const isWasm = response.headers.get('content-type')?.startsWith('application/wasm') === true;
  return isWasm ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}
