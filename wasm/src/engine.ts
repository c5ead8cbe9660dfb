import type { DType, ReduceOp } from './dtypes.js';
import type { Failure } from './errors.js';
import type { collectiveForms, formulas } from './tables.js';
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

/** What joining needs; a `port` of 0 is nobody's: then the world is this side alone. */
export interface JoinRequest {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly token: string;
  /** Undefined: where there is a token. */
  readonly encrypt: boolean | undefined;
  readonly name: string;
  /** Milliseconds; undefined: the core's default. */
  readonly connectTimeout: number | undefined;
  readonly operationTimeout: number | undefined;
}

/** A collective; its `_v` form has `counts` besides. */
export type Collective = Exclude<(typeof collectiveForms)[number], `${string}_v`>;

export type Kind = Collective | 'send' | 'recv';

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

/** How a group's ranks stand, and how what has more than one way is moved. */
export interface Placement {
  /** The group's ranks in the order of the ring, from rank 0 on. */
  readonly ring: readonly number[];
  /** A sentence for people: "2 native ranks, 2 browsers: large all-reduces by leaves (...)". */
  readonly text: string;
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

/** A tensor of a tree: bytes are read and, where results come back, written. */
export interface NamedOperand extends Operand {
  readonly name: string;
}

/** Gradients that are to be averaged in place. */
export interface AverageRequest {
  readonly group: number;
  readonly stream: number;
  readonly leaves: readonly NamedOperand[];
  readonly allReduceSize: number;
  readonly communicationType: DType | undefined;
  readonly weight: number | undefined;
}

/** The optimizers' formulas, by MLX's names. */
export type Formula = (typeof formulas)[number];

/** An optimizer as the core is told of it at each step; the state belongs to its `id`. */
export interface OptimizerStep {
  readonly id: number;
  readonly formula: Formula;
  readonly learningRate: number;
  /** The formula's other numbers, in the order of its options in the C++ library; true is 1. */
  readonly numbers: readonly number[];
  readonly stateDtype: DType | undefined;
}

/** One step on shards: `parameters` are updated in place. */
export interface FsdpRequest {
  readonly group: number;
  /** Ranks that hold the same shard. */
  readonly dpGroup: number | undefined;
  readonly stream: number;
  readonly gradients: readonly NamedOperand[];
  readonly parameters: readonly NamedOperand[];
  readonly optimizer: OptimizerStep;
  readonly communicationSize: number;
  readonly maxNorm: number | undefined;
  readonly reduceDtype: DType | undefined;
  readonly shardWeights: readonly number[] | undefined;
}

/** The wasm module's memory, where this realm can reach it. */
export interface EngineMemory extends WasmMemory {
  /** Zeros, aligned to 16 bytes. Throws `RangeError` where memory is short. */
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
  /** Ends when the averages are in the leaves' places. */
  average(request: AverageRequest): Promise<void>;
  /** Ends when the parameters are updated; gives the norm of the gradients before clipping, where they are clipped. */
  applyFsdp(request: FsdpRequest): Promise<number | undefined>;
  /** Undefined where the colour is negative. */
  split(request: SplitRequest): Promise<Membership | undefined>;
  /** How a buffer of so many bytes is moved; undefined where there is no such operation. */
  algorithm(group: number, operation: string, bytes: number): Promise<string | undefined>;
  /** How the group's ranks stand and what that means. */
  placement(group: number): Promise<Placement>;
  /** Never rejects. */
  leave(group: number): Promise<void>;
}
