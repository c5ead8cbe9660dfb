import type { DType } from './dtypes.js';
import { AbortError, InvalidArgument } from './errors.js';
import type { Values } from './tensors.js';

/** What every operation can be told. */
export interface CallOptions {
  /** Operations of one stream run in the order in which they were started; those of two streams overlap. 0 to 1023, 0 unless given. */
  readonly stream?: number | undefined;
  /** Milliseconds that the operation may take from the moment it starts; otherwise the group's `operationTimeout`. */
  readonly timeout?: number | undefined;
  /**
   * Ends the wait with an `AbortError`. The operation itself goes on, since other ranks take part in it; its result is dropped. To end the
   * operation, `leave` the group: it fails as a whole, on all ranks.
   */
  readonly signal?: AbortSignal | undefined;
}

/** What operations on values can be told besides. */
export interface ValueOptions extends CallOptions {
  /** Where the array can hold several: f16 or bf16 in Uint16Array, bool in Uint8Array, complex64 in Float32Array. */
  readonly dtype?: DType | undefined;
  /** One axis unless given. */
  readonly shape?: readonly number[] | undefined;
  /** Where the result goes, and what the call then gives back; otherwise new memory. It may be the input itself. */
  readonly into?: Values | undefined;
}

const maxStream = 1023;

/** Throws `InvalidArgument` where stream or timeout are none. */
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

/** Throws an `AbortError` where the signal has fired already: then nothing is started. */
export function checkSignal(what: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AbortError(`${what} was not started: its AbortSignal had fired before`, signal.reason);
}

/** The promise, or an `AbortError` as soon as the signal fires. */
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
