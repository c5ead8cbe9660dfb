import type { AverageRequest, FsdpRequest, JoinRequest, Membership, Operation, Progress, SplitRequest, Placement } from '../engine.js';
import type { Failure } from '../errors.js';
import type { WasmSource } from '../wasm_source.js';

/** What a page sends to the Worker that holds its group. `id` is the answer's, too. */
export type Request =
  | { readonly kind: 'join'; readonly id: number; readonly request: JoinRequest; readonly wasm: WasmSource | undefined }
  | { readonly kind: 'run'; readonly id: number; readonly operation: Operation }
  | { readonly kind: 'average'; readonly id: number; readonly request: AverageRequest }
  | { readonly kind: 'fsdp'; readonly id: number; readonly request: FsdpRequest }
  | { readonly kind: 'split'; readonly id: number; readonly request: SplitRequest }
  | { readonly kind: 'algorithm'; readonly id: number; readonly group: number; readonly operation: string; readonly bytes: number }
  | { readonly kind: 'placement'; readonly id: number; readonly group: number }
  | { readonly kind: 'leave'; readonly id: number; readonly group: number };

/** Leaves that were written, with what else the call gives. */
export interface Written {
  readonly leaves: readonly Uint8Array[];
  readonly norm?: number | undefined;
}

export type Value = Membership | Placement | Uint8Array | Written | string | undefined;

/** What such a Worker sends back. */
export type Reply =
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'done'; readonly id: number; readonly value: Value }
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
