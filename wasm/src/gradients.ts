import { type CallOptions, checkCall } from './calls.js';
import { type DType, factsOf } from './dtypes.js';
import type { AverageRequest, FsdpRequest } from './engine.js';
import { InvalidArgument } from './errors.js';

/** Options for averaging gradients. */
export interface AverageOptions extends Omit<CallOptions, 'timeout'> {
  /** Bytes of gradients that are moved together, by default 32 MiB; 0 or less: each tensor by itself. */
  readonly allReduceSize?: number | undefined;
  /** The dtype on the network, f16 or bf16; unset: each tensor's own. */
  readonly communicationType?: DType | undefined;
  /**
   * This rank's share of the average, such as its number of samples: the result is sum(weight * gradient) / sum(weight). It must be set on
   * all ranks or on none; unset means the plain mean. It is 0 or more, and above 0 on at least one rank.
   */
  readonly weight?: number | undefined;
}

/** Options of an FSDP step. */
export interface FsdpOptions extends Omit<CallOptions, 'timeout'> {
  /** Bytes of gradients, or of parameters, that are moved together, by default 32 MiB; 0 or less: each tensor by itself. */
  readonly communicationSize?: number | undefined;
  /** Gradients are scaled so that their global norm is at most this. */
  readonly maxNorm?: number | undefined;
  /** The floating dtype in which gradients are reduced; unset: their own. */
  readonly reduceDtype?: DType | undefined;
  /** Each rank's share of the rows, such as its memory: one per rank, the same on every rank. Unset: even shares. */
  readonly shardWeights?: readonly number[] | undefined;
}

const defaultBytes = 32 << 20;

/** Checks the options. Throws `InvalidArgument` for options that are not valid. */
export function averageSettings(options: AverageOptions): Omit<AverageRequest, 'group' | 'leaves'> {
  const { allReduceSize = defaultBytes, communicationType, weight } = options;
  checkSize('allReduceSize', allReduceSize);
  if (communicationType !== undefined) factsOf(communicationType);
  if (weight !== undefined && !(weight >= 0 && Number.isFinite(weight))) {
    throw new InvalidArgument(`a weight of ${weight} is none; give a number from 0, such as the number of samples`);
  }
  return { stream: checkCall(options).stream, allReduceSize, communicationType, weight };
}

/** Checks the options. Throws `InvalidArgument` for options that are not valid. */
export function fsdpSettings(options: FsdpOptions): Omit<FsdpRequest, 'group' | 'dpGroup' | 'gradients' | 'parameters' | 'optimizer'> {
  const { communicationSize = defaultBytes, maxNorm, reduceDtype, shardWeights } = options;
  checkSize('communicationSize', communicationSize);
  if (reduceDtype !== undefined) factsOf(reduceDtype);
  if (maxNorm !== undefined && !(maxNorm >= 0)) throw new InvalidArgument(`a maxNorm of ${maxNorm} is none; give a number from 0`);
  return { stream: checkCall(options).stream, communicationSize, maxNorm, reduceDtype, shardWeights };
}

function checkSize(name: string, bytes: number): void {
  if (!Number.isSafeInteger(bytes)) throw new InvalidArgument(`${name} is ${bytes}; give a whole number of bytes`);
}
