import type { DType, ReduceOp } from './dtypes.js';
import type { Failure } from './errors.js';
import type { BlockWire } from './gradients.js';
import type { collectiveForms, formulas } from './tables.js';
import type { WasmMemory } from './wasm_tensors.js';

/** This side's place in the world, as the coordinator has told it. */
export interface Seat {
  readonly rank: number;
  readonly size: number;
  /** How many ranks are browsers or Node; they are the last ones. */
  readonly guests: number;
  /** Whether the group goes on without ranks that are lost, and this side may join it again. */
  readonly elastic: boolean;
  /** How often an elastic group's world was formed anew before this one: 0 at first, and the same number on all ranks. */
  readonly epoch: number;
}

/** A group that this side is in; the world's own group has the number 0. */
export interface Membership {
  readonly group: number;
  readonly rank: number;
  readonly size: number;
}

/** Bytes that have passed over this side's links since it joined, without the framing of WebSockets. */
export interface Traffic {
  readonly sent: number;
  readonly received: number;
}

/**
 * News: progress of joining (`knocking`: a group that runs has been reached, and admits this side soon), traffic, and the end of
 * the world if the caller did not ask for it.
 */
export type Progress =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'waiting'; readonly here: number; readonly size: number }
  | { readonly kind: 'knocking' }
  | ({ readonly kind: 'joined' } & Seat)
  | ({ readonly kind: 'traffic' } & Traffic)
  | { readonly kind: 'failed'; readonly failure: Failure };

/** What is needed to join. A `port` of 0 means that there is nobody to join: the world is this side alone. */
export interface JoinRequest {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly token: string;
  /** Undefined: encrypted if there is a token. */
  readonly encrypt: boolean | undefined;
  readonly name: string;
  /** Milliseconds; undefined: the core's default. */
  readonly connectTimeout: number | undefined;
  readonly operationTimeout: number | undefined;
}

/** A collective; if `counts` are given, its `_v` form is called. */
export type Collective = Exclude<(typeof collectiveForms)[number], `${string}_v`>;

export type Kind = Collective | 'send' | 'recv';

/** The elements of an operand: bytes of this realm, which are copied once, or an address in the wasm module's memory, which is borrowed. */
export interface Operand {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly at: Uint8Array | number;
}

/** Where a result goes: into the given bytes, to an address in the wasm module's memory, or, with `undefined`, into new bytes. */
export interface Result {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly at: Uint8Array | number | undefined;
}

/** How a group's ranks are placed in the ring, and which algorithms they use. */
export interface Placement {
  /** The group's ranks in the order of the ring, from rank 0 on. */
  readonly ring: readonly number[];
  /** A sentence for people: "2 native ranks, 2 browsers: large all-reduces by hub (...)". */
  readonly text: string;
}

/** One call of a group. All of its contents can be sent to a Worker. */
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

/** What is known of the world, beside this side's place in it. */
export interface WorldState {
  /** Why it has ended; undefined as long as it goes on. */
  readonly failure: Failure | undefined;
  /** Of an elastic group: differs where a world was cut in two that both went on. */
  readonly lineage: bigint;
  /** By native rank of an elastic group: where processes knock at it, the same in all worlds of its process; '' where that is unknown. */
  readonly doors: readonly string[];
}

/** A vote of all ranks of the world; `trains`: on a step of an ElasticTrainer. */
export interface VoteRequest {
  readonly group: number;
  readonly mine: boolean;
  readonly trains: boolean;
  readonly timeout: number | undefined;
}

/** A request to form a part of a group. */
export interface SplitRequest {
  readonly group: number;
  readonly color: number;
  readonly key: number;
  readonly stream: number;
  readonly timeout: number | undefined;
}

/** A tensor of a tree. Its bytes are read and, if the operation changes it, written. */
export interface NamedOperand extends Operand {
  readonly name: string;
}

/** A request to average gradients in place. */
export interface AverageRequest {
  readonly group: number;
  readonly stream: number;
  readonly leaves: readonly NamedOperand[];
  readonly allReduceSize: number;
  readonly communicationType: DType | BlockWire | undefined;
  readonly weight: number | undefined;
  /** The sum of all ranks' weights where it is known. */
  readonly totalWeight?: number | undefined;
}

/** A request to make the states of all ranks that train equal; the tensors are overwritten where this side's state is another one. */
export interface SyncRequest {
  readonly group: number;
  readonly stream: number;
  readonly state: readonly NamedOperand[];
  /** What belongs to the state beside the tensors. */
  readonly values: string;
  /** Whether this side has no state. */
  readonly lacks: boolean;
  readonly step: number;
}

/** The state that all ranks have then. */
export interface Synced {
  /** Whether this side's state was overwritten. */
  readonly taken: boolean;
  readonly step: number;
  readonly values: string;
}

/** The optimizers' formulas, with MLX's names. */
export type Formula = (typeof formulas)[number];

/** An optimizer in the form that the core gets at each step; the state belongs to its `id`. */
export interface OptimizerStep {
  readonly id: number;
  readonly formula: Formula;
  readonly learningRate: number;
  /** The formula's other numbers, in the order of its options in the C++ library; true is 1. */
  readonly numbers: readonly number[];
  readonly stateDtype: DType | undefined;
}

/** A request for one FSDP step; `parameters` are updated in place. */
export interface FsdpRequest {
  readonly group: number;
  /** The group of the ranks that hold the same shard. */
  readonly dpGroup: number | undefined;
  readonly stream: number;
  readonly gradients: readonly NamedOperand[];
  readonly parameters: readonly NamedOperand[];
  readonly optimizer: OptimizerStep;
  readonly communicationSize: number;
  readonly maxNorm: number | undefined;
  readonly reduceDtype: DType | BlockWire | undefined;
  readonly shardWeights: readonly number[] | undefined;
}

/** The wasm module's memory, for realms that can reach it. */
export interface EngineMemory extends WasmMemory {
  /** Allocates zeroed memory, aligned to 16 bytes. Throws `RangeError` if memory is short. */
  allocate(bytes: number): number;
}

/**
 * The interface that groups call: the core in this realm or in a Worker. An operation is started inside its call, so calls keep their
 * order; data in this realm's memory has been copied when the call returns.
 */
export interface Engine {
  readonly seat: Seat;
  readonly traffic: Traffic;
  readonly memory: EngineMemory | undefined;
  /** Resolves to the output if it has no place of its own. */
  run(operation: Operation): Promise<Uint8Array | undefined>;
  /** Resolves when the averages have replaced the gradients. */
  average(request: AverageRequest): Promise<void>;
  /** Resolves when the parameters are updated, to the norm of the gradients before clipping if they are clipped. */
  applyFsdp(request: FsdpRequest): Promise<number | undefined>;
  /** Resolves when all ranks have the same state. After a failure the tensors' contents are unspecified. */
  sync(request: SyncRequest): Promise<Synced>;
  /** Resolves to whether all ranks say yes. */
  vote(request: VoteRequest): Promise<boolean>;
  /** Resolves to undefined if the color is negative. */
  split(request: SplitRequest): Promise<Membership | undefined>;
  /** Resolves to how a buffer of this many bytes is moved; undefined if there is no such operation. */
  algorithm(group: number, operation: string, bytes: number): Promise<string | undefined>;
  /** Resolves to the order of the group's ranks and the algorithms that follow from it. */
  placement(group: number): Promise<Placement>;
  /** Resolves to what is known of the world; rejects with `InvalidArgument` once this side has left it. */
  worldState(): Promise<WorldState>;
  /** Ends an elastic group's world on all ranks, as `Cancelled`, if it has not ended; rejects with `InvalidArgument` once this side has left it. */
  revoke(): Promise<void>;
  /** Frees what is kept for the optimizer with this `id`, which is not used any more. Never rejects. */
  forget(optimizer: number): Promise<void>;
  /** Never rejects. */
  leave(group: number): Promise<void>;
  /** Leaves the world. Never rejects; may be called again. */
  close(): Promise<void>;
}
