import { linkAt } from './addresses.js';
import { checkCall, checkSignal } from './calls.js';
import { longestTimeout } from './core/timeouts.js';
import type { Engine, Progress, Seat, WorldState } from './engine.js';
import {
  AbortError,
  AuthenticationError,
  Cancelled,
  InvalidArgument,
  MismatchError,
  PeerLost,
  ProtocolError,
  type RingletError,
  Timeout,
  toError,
} from './errors.js';
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

/** Joins once. */
export type Join = (options: JoinOptions) => Promise<Group>;

/** How a world stood when it had ended, and why it has. */
interface End {
  readonly state: WorldState;
  readonly cause: RingletError;
}

const shortestPause = 50;
const longestPause = 2000;
const defaultTimeout = 600_000;
const defaultConnectTimeout = 60_000;
// How long one of several places is tried in the first round; twice as long in each that follows.
const firstPatience = 1500;

/** How this side goes on when its world has ended. All groups of one world share it. */
export class Succession {
  readonly #engine: Engine;
  readonly #entrance: Entrance | undefined;
  readonly #defaultTimeout: number;
  readonly #leaving = new AbortController();
  #end: End | undefined;
  #isRunning = false;
  #hasSucceeded = false;

  /** Without an entrance the group cannot be joined again. */
  constructor(engine: Engine, entrance?: Entrance, operationTimeout?: number) {
    this.#engine = engine;
    this.#entrance = entrance;
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
    const entrance = this.#entrance;
    if (entrance === undefined || !this.#engine.seat.elastic)
      throw new InvalidArgument(
        'the group is not elastic, and ends with its first loss; `ringlet serve`, or RINGLET_ELASTIC=on, starts one that goes on',
      );
    if (this.#leaving.signal.aborted || this.#hasSucceeded) throw new InvalidArgument('this side has left this world');
    if (this.#isRunning) throw new InvalidArgument('reform() of this world is under way; one at a time may be');
    this.#isRunning = true;
    try {
      return await this.#reform(entrance, timeout, options.signal);
    } finally {
      this.#isRunning = false;
    }
  }

  async #reform(entrance: Entrance, timeout: number, signal: AbortSignal | undefined): Promise<Reformed> {
    const { state, cause } = (this.#end ??= await this.#endOfWorld());
    // The native ranks do not admit it as long as they take it for a member.
    await this.#engine.close();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), Math.min(timeout, longestTimeout));
    try {
      const signals = [this.#leaving.signal, late.signal, signal];
      const world = await underSignals(signals, (any) => entrance.joinPersistently(any, cause, state.doors));
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

/** Where one side joins a group that goes on, again and again: at the address that it was given, and at the doors of the native ranks. */
export class Entrance {
  readonly #join: Join;
  readonly #where: JoinOptions;
  // The link to where it came in last.
  #last: string | undefined;

  constructor(join: Join, where: JoinOptions) {
    this.#join = join;
    this.#where = where;
  }

  /**
   * Joins, with growing pauses between attempts, as long as the group's ranks are there and an attempt has failed for a reason that passes,
   * such as another rank that was lost while all met. `cause` is why this side's world before has ended, and `doors` are those of its native
   * ranks, "host:port". Without a cause only a group that has let this side wait at its door is tried again.
   */
  async joinPersistently(signal: AbortSignal, cause: RingletError | undefined, doors: readonly string[]): Promise<Group> {
    const { connectTimeout = defaultConnectTimeout, onProgress } = this.#where;
    const places = this.#places(doors);
    const known = [...places];
    let isElastic = cause !== undefined;
    let patience = firstPatience;
    let lastReached = performance.now();
    for (let at = 0, pause = shortestPause; ; pause = Math.min(2 * pause, longestPause)) {
      if (isElastic) await wait(pause, signal);
      const url = places[at] ?? '';
      const left = Math.max(1, Math.ceil(lastReached + connectTimeout - performance.now()));
      const time = places.length > 1 ? Math.min(patience, left) : connectTimeout;
      let isReached = false;
      const hear = (progress: Progress): void => {
        if (progress.kind === 'knocking') isElastic = isReached = true;
        onProgress?.(progress);
      };
      try {
        const group = await this.#join({ ...this.#where, url, connectTimeout: time, signal, onProgress: hear });
        this.#last = url;
        return group;
      } catch (error) {
        if (isElastic && passes(error, isReached)) {
          if (isReached) lastReached = performance.now();
          continue;
        }
        if (cause === undefined || places.length === 1 || isReached || !isOfPlace(error)) throw asFinal(error, cause);
        // What answers otherwise is not the group, whose token and version this side has.
        if (error instanceof Timeout) ++at;
        else places.splice(at, 1);
        if (at >= places.length) [at, patience] = [0, 2 * patience];
        if (performance.now() - lastReached >= connectTimeout) throw asFinal(error, cause, triedAt(known, connectTimeout));
      }
    }
  }

  /** The links to all places, the likeliest first. */
  #places(doors: readonly string[]): string[] {
    const { url } = this.#where;
    const others = doors.filter((door) => door !== '').map((door) => linkAt(url, door));
    const known = others.filter((link) => link !== undefined);
    if (known.length === 0) return [String(url)];
    const own = new URL(url).href;
    return [...new Set([this.#last ?? own, own, ...known])];
  }
}

function passes(error: unknown, isReached: boolean): boolean {
  if (error instanceof PeerLost || error instanceof Cancelled) return true;
  return isReached && (error instanceof Timeout || error instanceof ProtocolError);
}

/** Whether the group may be found at another place. */
function isOfPlace(error: unknown): boolean {
  return [Timeout, AuthenticationError, MismatchError, ProtocolError].some((kind) => error instanceof kind);
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

/** What the program is told where this side cannot go on. `tried` says where, if at several places. */
function asFinal(error: unknown, cause: RingletError | undefined, tried = ''): unknown {
  if (cause === undefined || !(error instanceof Timeout)) return error;
  return new PeerLost(`${cause.message}; and the others could not be joined again${tried}: ${error.message}`, cause.rank);
}

const triedAt = (links: readonly string[], milliseconds: number): string =>
  ` at any of ${links.map((link) => new URL(link).host).join(', ')} within ${milliseconds} ms`;

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
