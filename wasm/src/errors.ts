/** What kind of thing went wrong, by the names that the C++ library gives. */
export type ErrorCode =
  'invalid_argument' | 'mismatch' | 'peer_lost' | 'timed_out' | 'protocol_error' | 'cancelled' | 'io_error' | 'aborted' | 'authentication';

/** Of every error of this package. `message` is one sentence for a person: what was wrong, with which value, and what to do. */
export class RingletError extends Error {
  override readonly name: string = 'RingletError';
  /** What kind of thing went wrong. */
  readonly code: ErrorCode;
  /** The rank that caused it, counted in the world; -1 where none did or none is known. */
  readonly rank: number;
  /** The core's own words: `message` without what this package may have added. */
  readonly reason: string;

  constructor(code: ErrorCode, message: string, rank = -1, options: { reason?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.rank = rank;
    this.reason = options.reason ?? message;
  }
}

/** The caller's mistake. Nothing has moved and the group lives on. */
export class InvalidArgument extends RingletError {
  override readonly name = 'InvalidArgument';
  constructor(message: string, rank = -1) {
    super('invalid_argument', message, rank);
  }
}

/** Ranks disagree about a call; every rank gets it, and the text says what each of them called. Of a collective it ends the world. */
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

/** An operation's or the meeting's deadline passed. It ends the world. */
export class Timeout extends RingletError {
  override readonly name = 'Timeout';
  constructor(message: string, rank = -1) {
    super('timed_out', message, rank);
  }
}

/** A peer sent what it may not send. It ends the world. */
export class ProtocolError extends RingletError {
  override readonly name = 'ProtocolError';
  constructor(message: string, rank = -1) {
    super('protocol_error', message, rank);
  }
}

/** The group was left, or closed, under the call. */
export class Cancelled extends RingletError {
  override readonly name = 'Cancelled';
  constructor(message: string, rank = -1) {
    super('cancelled', message, rank);
  }
}

/** The other side did not accept this side's token, or could not show that it knows it. */
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

// By Errc's numbers, which are append-only.
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

/** The failure that the core reports by an Errc's number. */
export function failureOf(errc: number, message: string, rank: number): Failure {
  const code = codes[errc];
  return { code: code === undefined || code === 'ok' ? 'protocol_error' : code, message, rank };
}

/** What can cross from a Worker of any error. */
export function toFailure(error: unknown): Failure {
  if (error instanceof RingletError) return { code: error.code, message: error.message, rank: error.rank };
  return { code: 'io_error', message: error instanceof Error ? error.message : String(error), rank: -1 };
}

/** The error of the class that fits. */
export function toError(failure: Failure): RingletError {
  const Class = classes[failure.code];
  return Class === undefined ? new RingletError(failure.code, failure.message, failure.rank) : new Class(failure.message, failure.rank);
}
