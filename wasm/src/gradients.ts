import { type CallOptions, checkCall } from './calls.js';
import { type DType, factsOf } from './dtypes.js';
import type { AverageRequest, FsdpRequest } from './engine.js';
import { InvalidArgument } from './errors.js';
import { blockFormats, firstBlocks } from './tables.js';

/** A format of blocks: int8 has 64 elements in 65 bytes, int4 has 32 in 17. */
export type BlockFormat = (typeof blockFormats)[number];

/**
 * Real tensors cross the network in blocks with one scale and an integer code per element. Each rank rounds its own once, the owner of a
 * part rounds the mean once, and all ranks end with the same bits. NaNs and infinities are kept. It is the same on all ranks.
 */
export interface BlockWire {
  readonly blocks: BlockFormat;
  /** Whether each rank keeps what its rounding leaves out, of its gradients and of means, and adds it to those of its next step. */
  readonly feedback?: boolean | undefined;
  /** Tensors with fewer elements are sent as bf16; 16384 unless given. */
  readonly leastElements?: number | undefined;
}

/** Options for averaging gradients. Each of the operations that it consists of has the group's `operationTimeout`. */
export interface AverageOptions extends Omit<CallOptions, 'timeout'> {
  /** Bytes of gradients that are moved together, by default 32 MiB; 0 or less: each tensor by itself. */
  readonly allReduceSize?: number | undefined;
  /** How real tensors cross the network: f16, bf16, or in blocks, such as `{ blocks: 'int8' }`; unset: each in its own dtype. */
  readonly communicationType?: DType | BlockWire | undefined;
  /**
   * This rank's share of the average, such as its number of samples: the result is sum(weight * gradient) / sum(weight). It must be set on
   * all ranks or on none; unset means the plain mean. It is 0 or more, and above 0 on at least one rank.
   */
  readonly weight?: number | undefined;
}

/** Options of an FSDP step. Each of the operations that it consists of has the group's `operationTimeout`. */
export interface FsdpOptions extends Omit<CallOptions, 'timeout'> {
  /** Bytes of gradients, or of parameters, that are moved together, by default 32 MiB; 0 or less: each tensor by itself. */
  readonly communicationSize?: number | undefined;
  /** Gradients are scaled so that their global norm is at most this. */
  readonly maxNorm?: number | undefined;
  /**
   * How gradients are reduced: in a floating dtype, or in blocks, such as `{ blocks: 'int8' }`, whose feedback belongs to the optimizer
   * that is given; unset: in their own dtype.
   */
  readonly reduceDtype?: DType | BlockWire | undefined;
  /** Each rank's share of the rows, such as its memory: one per rank, the same on every rank. Unset: even shares. */
  readonly shardWeights?: readonly number[] | undefined;
}

const defaultBytes = 32 << 20;
const defaultLeastElements = 16 << 10;

/** Checks the options. Throws `InvalidArgument` for options that are not valid. */
export function averageSettings(options: AverageOptions): Omit<AverageRequest, 'group' | 'leaves'> {
  const { allReduceSize = defaultBytes, communicationType, weight } = options;
  checkSize('allReduceSize', allReduceSize);
  checkWire(communicationType);
  if (weight !== undefined && !(weight >= 0 && Number.isFinite(weight))) {
    throw new InvalidArgument(`a weight of ${weight} is none; give a number from 0, such as the number of samples`);
  }
  return { stream: checkCall(options).stream, allReduceSize, communicationType, weight };
}

/** Checks the options for a group of so many ranks. Throws `InvalidArgument` for options that are not valid. */
export function fsdpSettings(
  options: FsdpOptions,
  ranks: number,
): Omit<FsdpRequest, 'group' | 'dpGroup' | 'gradients' | 'parameters' | 'optimizer'> {
  const { communicationSize = defaultBytes, maxNorm, reduceDtype, shardWeights } = options;
  checkSize('communicationSize', communicationSize);
  checkWire(reduceDtype);
  if (maxNorm !== undefined && !(maxNorm >= 0)) throw new InvalidArgument(`a maxNorm of ${maxNorm} is none; give a number from 0`);
  // The core reads as many as there are ranks, and checks each.
  if (shardWeights !== undefined && shardWeights.length !== ranks)
    throw new InvalidArgument(`shardWeights has ${shardWeights.length} numbers, but the group has ${ranks} ranks; give one for each`);
  return { stream: checkCall(options).stream, communicationSize, maxNorm, reduceDtype, shardWeights };
}

function checkWire(type: DType | BlockWire | undefined): void {
  if (typeof type === 'object') checkBlocks(type);
  else if (type !== undefined) factsOf(type);
}

function checkBlocks({ blocks, leastElements = defaultLeastElements }: BlockWire): void {
  if (!blockFormats.includes(blocks))
    throw new InvalidArgument(`'${String(blocks)}' is no format of blocks; there are ${blockFormats.join(', ')}`);
  if (!(Number.isSafeInteger(leastElements) && leastElements >= 0))
    throw new InvalidArgument(`leastElements is ${leastElements}; give a number of elements from 0`);
}

/** The numbers that the core takes for a type of communication: wire, feedback, leastElements. */
export function wireNumbers(type: DType | BlockWire | undefined): readonly [number, number, number] {
  if (type === undefined) return [-1, 0, 0];
  if (typeof type === 'string') return [factsOf(type).number, 0, 0];
  return [firstBlocks + blockFormats.indexOf(type.blocks), type.feedback === true ? 1 : 0, type.leastElements ?? defaultLeastElements];
}

function checkSize(name: string, bytes: number): void {
  if (!Number.isSafeInteger(bytes)) throw new InvalidArgument(`${name} is ${bytes}; give a whole number of bytes`);
}
