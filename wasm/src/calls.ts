import type { DType } from './dtypes.js';
import { AbortError, InvalidArgument } from './errors.js';
import type { Values } from './tensors.js';

/** The options of every operation. */
export interface CallOptions {
  /** Operations of one stream run in the order in which they were started; those of two streams overlap. 0 to 1023, by default 0. */
  readonly stream?: number | undefined;
  /** How many milliseconds the operation may take from its start; by default the group's `operationTimeout`. */
  readonly timeout?: number | undefined;
  /**
   * Ends the wait with an `AbortError`. The operation itself goes on, because other ranks take part in it; its result is dropped. To end
   * the operation, `leave` the group: it then fails as a whole, on all ranks.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Further options of operations on values. */
export interface ValueOptions extends CallOptions {
  /** The dtype, if the array can hold several: f16 or bf16 in Uint16Array, bool in Uint8Array, complex64 in Float32Array, complex128 in Float64Array. */
  readonly dtype?: DType | undefined;
  /** The shape; by default one axis. */
  readonly shape?: readonly number[] | undefined;
  /** Where the result goes; the call then returns it. By default new memory. It may be the input itself. */
  readonly into?: Values | undefined;
}

const maxStream = 1023;

/** Throws `InvalidArgument` if stream or timeout are not valid. */
export function checkCall(options: CallOptions): { stream: number; timeout: number | undefined } {
  const { stream = 0, timeout } = options;
  if (!Number.isInteger(stream) || stream < 0 || stream > maxStream) {
    throw new InvalidArgument(`${stream} is no stream; give a whole number from 0 to ${maxStream}`);
  }
  if (timeout !== undefined && !(timeout > 0 && Number.isFinite(timeout))) {
    throw new InvalidArgument(`a timeout of ${timeout} ms is none; give a number above 0`);
  }
  return { stream, timeout };
}

/** Throws an `AbortError` if the signal has already fired, so that nothing is started. */
export function checkSignal(what: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AbortError(`${what} was not started: its AbortSignal had fired before`, signal.reason);
}

/** Returns a promise with the same result, which rejects with an `AbortError` as soon as the signal fires. */
export function waitFor<T>(what: string, promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(
        new AbortError(
          `the wait for ${what} was aborted; the operation goes on, since other ranks take part in it, and its result is dropped. ` +
            'To end the operation itself, leave() the group: that ends it on all ranks',
          signal.reason,
        ),
      );
    };
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
