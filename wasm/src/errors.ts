/** The kinds of errors, with the names of the C++ library. */
export type ErrorCode =
  'invalid_argument' | 'mismatch' | 'peer_lost' | 'timed_out' | 'protocol_error' | 'cancelled' | 'io_error' | 'aborted' | 'authentication';

/** The base class of this package's errors. `message` is one sentence for a person: what was wrong, with which value, and what to do. */
export class RingletError extends Error {
  override readonly name: string = 'RingletError';
  /** The kind of error. */
  readonly code: ErrorCode;
  /** The rank that caused it, counted in the world; -1 if none did or none is known. */
  readonly rank: number;
  /** The core's own text: `message` without anything that this package has added. */
  readonly reason: string;

  constructor(code: ErrorCode, message: string, rank = -1, options: { reason?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.rank = rank;
    this.reason = options.reason ?? message;
  }
}

/** The caller made a mistake. Nothing has moved, and the group stays usable. */
export class InvalidArgument extends RingletError {
  override readonly name = 'InvalidArgument';
  constructor(message: string, rank = -1) {
    super('invalid_argument', message, rank);
  }
}

/** Ranks disagree about a call. Every rank gets it, with the calls of all in the text. A mismatch in a collective ends the world. */
export class MismatchError extends RingletError {
  override readonly name = 'MismatchError';
  constructor(message: string, rank = -1) {
    super('mismatch', message, rank);
  }
}

/** A rank died, was cut off, or left. It ends the world. */
export class PeerLost extends RingletError {
  override readonly name = 'PeerLost';
  constructor(message: string, rank = -1) {
    super('peer_lost', message, rank);
  }
}

/** The deadline of an operation or of joining has passed. It ends the world. */
export class Timeout extends RingletError {
  override readonly name = 'Timeout';
  constructor(message: string, rank = -1) {
    super('timed_out', message, rank);
  }
}

/** A peer sent something that the protocol does not allow. It ends the world. */
export class ProtocolError extends RingletError {
  override readonly name = 'ProtocolError';
  constructor(message: string, rank = -1) {
    super('protocol_error', message, rank);
  }
}

/** The group was left or closed while the call was under way. */
export class Cancelled extends RingletError {
  override readonly name = 'Cancelled';
  constructor(message: string, rank = -1) {
    super('cancelled', message, rank);
  }
}

/** The other side did not accept this side's token, or could not prove that it knows it. */
export class AuthenticationError extends RingletError {
  override readonly name = 'AuthenticationError';
  constructor(message: string, rank = -1) {
    super('authentication', message, rank);
  }
}

/** The call's AbortSignal ended its wait. `cause` is the signal's reason. */
export class AbortError extends RingletError {
  override readonly name = 'AbortError';
  constructor(message: string, cause: unknown) {
    super('aborted', message, -1, { cause });
  }
}

/** A failure in a form that crosses from a Worker to its page. */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly rank: number;
}

// Indexed by the numbers of Errc, to which new ones are only ever added at the end.
const codes: readonly (ErrorCode | 'ok')[] = [
  'ok',
  'invalid_argument',
  'mismatch',
  'peer_lost',
  'timed_out',
  'protocol_error',
  'cancelled',
  'io_error',
];

const classes: Partial<Record<ErrorCode, new (message: string, rank: number) => RingletError>> = {
  invalid_argument: InvalidArgument,
  mismatch: MismatchError,
  peer_lost: PeerLost,
  timed_out: Timeout,
  protocol_error: ProtocolError,
  cancelled: Cancelled,
  authentication: AuthenticationError,
};

/** Makes the failure for an Errc's number that the core reports. */
export function failureOf(errc: number, message: string, rank: number): Failure {
  const code = codes[errc];
  return { code: code === undefined || code === 'ok' ? 'protocol_error' : code, message, rank };
}

/** Turns any error into the form that can cross from a Worker. */
export function toFailure(error: unknown): Failure {
  if (error instanceof RingletError) return { code: error.code, message: error.message, rank: error.rank };
  return { code: 'io_error', message: error instanceof Error ? error.message : String(error), rank: -1 };
}

/** Makes an error of the class that fits the failure. */
export function toError(failure: Failure): RingletError {
  const Class = classes[failure.code];
  return Class === undefined ? new RingletError(failure.code, failure.message, failure.rank) : new Class(failure.message, failure.rank);
}
