import type {
  AverageRequest,
  FsdpRequest,
  JoinRequest,
  Membership,
  Operation,
  Progress,
  SplitRequest,
  Synced,
  SyncRequest,
  Placement,
  VoteRequest,
  WorldState,
} from '../engine.js';
import type { Failure } from '../errors.js';
import type { WasmSource } from '../wasm_source.js';

/** A message from a page to the Worker that holds its group. The answer has the same `id`. */
export type Request =
  | { readonly kind: 'join'; readonly id: number; readonly request: JoinRequest; readonly wasm: WasmSource | undefined }
  | { readonly kind: 'run'; readonly id: number; readonly operation: Operation }
  | { readonly kind: 'average'; readonly id: number; readonly request: AverageRequest }
  | { readonly kind: 'fsdp'; readonly id: number; readonly request: FsdpRequest }
  | { readonly kind: 'sync'; readonly id: number; readonly request: SyncRequest }
  | { readonly kind: 'vote'; readonly id: number; readonly request: VoteRequest }
  | { readonly kind: 'split'; readonly id: number; readonly request: SplitRequest }
  | { readonly kind: 'algorithm'; readonly id: number; readonly group: number; readonly operation: string; readonly bytes: number }
  | { readonly kind: 'placement'; readonly id: number; readonly group: number }
  | { readonly kind: 'state'; readonly id: number }
  | { readonly kind: 'revoke'; readonly id: number }
  | { readonly kind: 'forget'; readonly id: number; readonly optimizer: number }
  | { readonly kind: 'leave'; readonly id: number; readonly group: number };

/** The leaves that were changed, with the other results of the call. */
export interface Written {
  readonly leaves: readonly Uint8Array[];
  readonly norm?: number | undefined;
  readonly synced?: Synced | undefined;
}

export type Value = Membership | Placement | Uint8Array | WorldState | Written | string | boolean | undefined;

/** A message from such a Worker to its page. */
export type Reply =
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'done'; readonly id: number; readonly value: Value }
  | { readonly kind: 'failed'; readonly id: number; readonly failure: Failure };

/** One end of the channel between the two. Workers of browsers and of Node have different functions for it. */
export interface Channel {
  post(message: Request | Reply, transfer: readonly ArrayBuffer[]): void;
  /** Sets the handler of messages. May be called once. */
  onMessage(handler: (message: never) => void): void;
  /** Sets the handler for a failure: the other end could not start, an error has occurred in it, or it has ended. May be called once. */
  onFailure(handler: (message: string) => void): void;
  /** Ends the Worker at once if called at the page's end; does nothing at the Worker's end. */
  end(): void;
}
