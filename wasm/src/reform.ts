import { checkCall, checkSignal } from './calls.js';
import { longestTimeout } from './core/timeouts.js';
import type { Engine, Progress, Seat, WorldState } from './engine.js';
import { AbortError, Cancelled, InvalidArgument, PeerLost, ProtocolError, RingletError, Timeout, toError } from './errors.js';
import type { Group } from './group.js';
import type { JoinOptions } from './join.js';

/** Options of Group.reform(). */
export interface ReformOptions {
  /** Milliseconds until this side has to be in the next world, by default the `operationTimeout` given to `join`. */
  readonly timeout?: number | undefined;
  /** Ends the wait with an `AbortError`. reform() may be called again then. */
  readonly signal?: AbortSignal | undefined;
}

/** The world of those who go on after a failure, this side among them. */
export interface Reformed {
  readonly world: Group;
  /**
   * By rank: the rank in the world before; -1 of a rank that has joined. A native rank is known by its door. Other guests come in anew each
   * time, so they have -1.
   */
  readonly before: readonly number[];
  /** Ranks of the world before that are in none of these places, ascending; other guests among them. */
  readonly lost: readonly number[];
  /** Differs where a world was cut in two that both went on. */
  readonly lineage: bigint;
  /** Why the world before has ended, with the culprit's rank in it. */
  readonly cause: RingletError;
}

/** Joins once, as the group was joined. */
export type Join = (options: { signal: AbortSignal; onProgress: (progress: Progress) => void }) => Promise<Group>;

/** Makes a function that joins with these options. */
export function joinWith(join: (options: JoinOptions) => Promise<Group>, where: JoinOptions): Join {
  return ({ signal, onProgress }) =>
    join({
      ...where,
      signal,
      onProgress: (progress) => {
        onProgress(progress);
        where.onProgress?.(progress);
      },
    });
}

/** How a world stood when it had ended, and why it has. */
interface End {
  readonly state: WorldState;
  readonly cause: RingletError;
}

const shortestPause = 50;
const longestPause = 2000;
const defaultTimeout = 600_000;

/** How this side goes on when its world has ended. All groups of one world share it. */
export class Succession {
  readonly #engine: Engine;
  readonly #join: Join | undefined;
  readonly #defaultTimeout: number;
  readonly #leaving = new AbortController();
  #end: End | undefined;
  #isRunning = false;
  #hasSucceeded = false;

  /** Without `join` the group cannot be joined again. */
  constructor(engine: Engine, join?: Join, operationTimeout?: number) {
    this.#engine = engine;
    this.#join = join;
    this.#defaultTimeout = operationTimeout ?? defaultTimeout;
  }

  /** This side leaves the world, and does not go on. */
  leave(): void {
    this.#leaving.abort();
  }

  /** See Group.reform(). */
  async reform(options: ReformOptions): Promise<Reformed> {
    const { timeout = this.#defaultTimeout } = checkCall(options);
    checkSignal('reform', options.signal);
    const join = this.#join;
    if (join === undefined || !this.#engine.seat.elastic)
      throw new InvalidArgument(
        'the group is not elastic, and ends with its first loss; `ringlet serve`, or RINGLET_ELASTIC=on, starts one that goes on',
      );
    if (this.#leaving.signal.aborted || this.#hasSucceeded) throw new InvalidArgument('this side has left this world');
    if (this.#isRunning) throw new InvalidArgument('reform() of this world is under way; one at a time may be');
    this.#isRunning = true;
    try {
      return await this.#reform(join, timeout, options.signal);
    } finally {
      this.#isRunning = false;
    }
  }

  async #reform(join: Join, timeout: number, signal: AbortSignal | undefined): Promise<Reformed> {
    const { state, cause } = (this.#end ??= await this.#endOfWorld());
    // The native ranks do not admit it as long as they take it for a member.
    await this.#engine.close();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(timeout, longestTimeout));
    try {
      const signals = [this.#leaving.signal, late.signal, signal];
      const world = await underSignals(signals, (any) => joinPersistently(join, any, cause));
      const now = await world.inner.engine.worldState();
      if (this.#leaving.signal.aborted) {
        await world.leave();
        throw new Cancelled('the group was left');
      }
      this.#hasSucceeded = true;
      return { world, ...compare(this.#engine.seat, state, world.world, now), lineage: now.lineage, cause };
    } catch (error) {
      if (!(error instanceof AbortError)) throw error;
      if (this.#leaving.signal.aborted) throw new Cancelled('the group was left');
      if (!late.signal.aborted) throw new AbortError('reform was aborted; it may be called again', signal?.reason);
      throw new Timeout(`the others have not admitted this side again within ${timeout} ms, since ${cause.message}`, cause.rank);
    } finally {
      clearTimeout(timer);
    }
  }

  async #endOfWorld(): Promise<End> {
    const state = await this.#engine.worldState();
    if (state.failure !== undefined) return { state, cause: toError(state.failure) };
    throw new InvalidArgument('the world has not failed; reform() follows an error that ended it, such as PeerLost, or revoke()');
  }
}

/**
 * Joins a group that goes on, again and again with growing pauses, as long as its ranks are there and an attempt has failed for a reason that
 * passes, such as another rank that was lost while all met. `cause` is why this side's world before has ended. Without it only a group that
 * has let this side wait at its door is tried again.
 */
export async function joinPersistently(join: Join, signal: AbortSignal, cause: RingletError | undefined): Promise<Group> {
  let isElastic = cause !== undefined;
  for (let pause = shortestPause; ; pause = Math.min(2 * pause, longestPause)) {
    if (isElastic) await wait(pause, signal);
    let isReached = false;
    const onProgress = ({ kind }: Progress): void => {
      if (kind === 'knocking') isElastic = isReached = true;
    };
    try {
      return await join({ signal, onProgress });
    } catch (error) {
      if (!isElastic || !passes(error, isReached)) throw asFinal(error, cause);
    }
  }
}

function passes(error: unknown, isReached: boolean): boolean {
  if (error instanceof PeerLost || error instanceof Cancelled) return true;
  return isReached && (error instanceof Timeout || error instanceof ProtocolError);
}

/**
 * After so many disagreements with other guests, with no step between them, this side takes itself for the one that does something else. The
 * native ranks tell only those whose calls they compare with their own.
 */
export const mostDisagreements = 3;

/** Whether the rank is a guest other than this side, in the world with this place of this side's. */
export function isAnotherGuest(rank: number, seat: Seat | undefined): boolean {
  return seat !== undefined && rank >= seat.size - seat.guests && rank !== seat.rank;
}

/** What the program is told where this side cannot go on. */
function asFinal(error: unknown, cause: RingletError | undefined): unknown {
  if (cause === undefined || !(error instanceof Timeout)) return error;
  return new PeerLost(`${cause.message}; and the others could not be joined again: ${error.message}`, cause.rank);
}

function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    const stop = (): void => {
      clearTimeout(timer);
      reject(new AbortError('joining was aborted', signal.reason));
    };
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

/** Runs a task with a signal that fires as soon as one of these does; AbortSignal.any() is younger than some phones' browsers. */
export async function underSignals<T>(signals: readonly (AbortSignal | undefined)[], task: (any: AbortSignal) => Promise<T>): Promise<T> {
  const any = new AbortController();
  const undo: (() => void)[] = [];
  for (const signal of signals) {
    if (signal === undefined) continue;
    const fire = (): void => any.abort(signal.reason);
    signal.addEventListener('abort', fire);
    undo.push(() => signal.removeEventListener('abort', fire));
    if (signal.aborted) fire();
  }
  try {
    return await task(any.signal);
  } finally {
    for (const one of undo) one();
  }
}

type Place = { readonly rank: number; readonly size: number };

function compare(placeBefore: Place, before: WorldState, place: Place, now: WorldState): Pick<Reformed, 'before' | 'lost'> {
  const ranks = Array.from({ length: place.size }, (_, rank) => {
    if (rank === place.rank) return placeBefore.rank;
    const door = now.doors[rank] ?? '';
    return door === '' ? -1 : before.doors.indexOf(door);
  });
  const lost = Array.from({ length: placeBefore.size }, (_, rank) => rank).filter((rank) => !ranks.includes(rank));
  return { before: ranks, lost };
}
