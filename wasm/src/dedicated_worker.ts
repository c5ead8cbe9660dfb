/** A Worker: of a browser there, of `node:worker_threads` in Node. Its own type would need TypeScript's `dom` library. */
export interface DedicatedWorker {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  terminate(): unknown;
}
