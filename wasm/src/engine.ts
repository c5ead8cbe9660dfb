import type { DType, ReduceOp } from './dtypes.js';
import type { Failure } from './errors.js';
import type { WasmMemory } from './wasm_tensors.js';

/** What this side is in the world, told by the coordinator. */
export interface Seat {
  readonly rank: number;
  readonly size: number;
  /** How many ranks are browsers or Node; they are the last ones. */
  readonly guests: number;
}

/** A group that this side is in: the world's number is 0. */
export interface Membership {
  readonly group: number;
  readonly rank: number;
  readonly size: number;
}

/** Bytes that have gone over this side's links since it joined, framing of WebSockets not counted. */
export interface Traffic {
  readonly sent: number;
  readonly received: number;
}

/** News while joining, of the bytes that move, and of the world's end, where that was not asked for. */
export type Progress =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'waiting'; readonly here: number; readonly size: number }
  | ({ readonly kind: 'joined' } & Seat)
  | ({ readonly kind: 'traffic' } & Traffic)
  | { readonly kind: 'failed'; readonly failure: Failure };

/** What joining needs. */
export interface JoinRequest {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly token: string;
  readonly name: string;
  /** Milliseconds; undefined: the core's default. */
  readonly connectTimeout: number | undefined;
  readonly operationTimeout: number | undefined;
  readonly heartbeatTimeout: number | undefined;
}

export type Kind =
  | 'all_reduce'
  | 'all_mean'
  | 'reduce_scatter'
  | 'all_gather'
  | 'broadcast'
  | 'reduce'
  | 'gather'
  | 'scatter'
  | 'all_to_all'
  | 'barrier'
  | 'send'
  | 'recv';

/** Elements of an operation: bytes of this realm, which are copied once, or a place in the wasm module's memory, which is borrowed. */
export interface Operand {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly at: Uint8Array | number;
}

/** What comes out: into the bytes given, to a place in the wasm module's memory, or, with `undefined`, into new bytes. */
export interface Result {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly at: Uint8Array | number | undefined;
}

/** One call of a group, with nothing in it that could not be sent to a Worker. */
export interface Operation {
  readonly kind: Kind;
  readonly group: number;
  readonly stream: number;
  /** Milliseconds; undefined: the group's. */
  readonly timeout: number | undefined;
  readonly op?: ReduceOp;
  readonly input?: Operand;
  readonly output?: Result;
  /** The root, or the other end of a message. */
  readonly peer?: number;
  readonly counts?: readonly number[];
  readonly receiveCounts?: readonly number[];
}

/** A part of a group that is to be formed. */
export interface SplitRequest {
  readonly group: number;
  readonly color: number;
  readonly key: number;
  readonly stream: number;
  readonly timeout: number | undefined;
}

/** The wasm module's memory, where this realm can reach it. */
export interface EngineMemory extends WasmMemory {
  /** Zeros, aligned to 64 bytes. Throws `RangeError` where memory is short. */
  allocate(bytes: number): number;
}

/**
 * What groups call: the core in this realm, or in a Worker. Operations are started inside the calls, in their order, and what they are given
 * in this realm's memory has been copied when the call returns.
 */
export interface Engine {
  readonly seat: Seat;
  readonly traffic: Traffic;
  readonly memory: EngineMemory | undefined;
  /** The output, where it has no place of its own. */
  run(operation: Operation): Promise<Uint8Array | undefined>;
  /** Undefined where the colour is negative. */
  split(request: SplitRequest): Promise<Membership | undefined>;
  /** Never rejects. */
  leave(group: number): Promise<void>;
}
