import type { JoinRequest, Membership, Operation, Progress, Seat, SplitRequest } from '../engine.js';
import type { Failure } from '../errors.js';
import type { WasmSource } from '../wasm_source.js';

/** What a page sends to the Worker that holds its group. `id` is the answer's, too. */
export type Request =
  | { readonly kind: 'join'; readonly id: number; readonly request: JoinRequest; readonly wasm: WasmSource | undefined }
  | { readonly kind: 'run'; readonly id: number; readonly operation: Operation }
  | { readonly kind: 'split'; readonly id: number; readonly request: SplitRequest }
  | { readonly kind: 'leave'; readonly id: number; readonly group: number };

/** What such a Worker sends back. */
export type Reply =
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'done'; readonly id: number; readonly value: Seat | Membership | Uint8Array | undefined }
  | { readonly kind: 'failed'; readonly id: number; readonly failure: Failure };

/** One end of the pipe between the two; browsers' Workers and Node's have it in different words. */
export interface Channel {
  post(message: Request | Reply, transfer: readonly ArrayBuffer[]): void;
  /** Once. */
  onMessage(handler: (message: never) => void): void;
  /** The other end cannot be started, or ended by an error. Once. */
  onFailure(handler: (message: string) => void): void;
  /** Ends the Worker at once, from the page's end; does nothing from the Worker's. */
  end(): void;
}
