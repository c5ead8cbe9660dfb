import { parseAddress, trimToken } from './addresses.js';
import { LocalEngine, type ModuleFactory } from './core/local_engine.js';
import { longestTimeout } from './core/timeouts.js';
import type { DedicatedWorker } from './dedicated_worker.js';
import type { Engine, JoinRequest, Membership, Progress } from './engine.js';
import { AbortError, InvalidArgument } from './errors.js';
import { Group } from './group.js';
import type { Platform } from './platform.js';
import { Entrance, Succession } from './reform.js';
import type { Channel } from './remote/messages.js';
import { RemoteEngine } from './remote/remote_engine.js';
import type { WasmSource } from './wasm_source.js';

/** Options for joining a group. */
export interface JoinOptions {
  /** The link that `ringlet serve` prints (http://192.168.1.5:4711/#token=...), or ws://host:port. */
  readonly url: string | URL;
  /**
   * The secret that every member of the group knows, without white space around it, which is left out; unset: the one in the link's
   * fragment, or none.
   */
  readonly token?: string | undefined;
  /**
   * Whether links are encrypted, which must be the same on all ranks; unset: the link's setting ("&encrypt=off"), or else encrypted if
   * there is a token.
   */
  readonly encrypt?: boolean | undefined;
  /** The name of this side, for people: "kitchen tablet". */
  readonly name?: string | undefined;
  /** Ends joining with an `AbortError`. It has no effect once `join` has ended. */
  readonly signal?: AbortSignal | undefined;
  /** Receives news: the progress of joining, then the traffic, and the end of the world if it was not asked for. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /**
   * Runs the core in a Worker of its own: true, or a Worker of yours whose script is `import 'ringlet/worker'`. It ends with its world, so
   * give a function that makes one where the group is to be joined again. An error in it that nobody catches, its end, and a minute without
   * an answer end its world, with an error of code `io_error`.
   */
  readonly dedicatedWorker?: boolean | DedicatedWorker | (() => DedicatedWorker) | undefined;
  /** Milliseconds within which rank 0 must give this rank a seat, by default 60,000. Rank 0 decides how long all wait for the last rank. */
  readonly connectTimeout?: number | undefined;
  /** Milliseconds that an operation may take from its start, by default 600,000. */
  readonly operationTimeout?: number | undefined;
  /** The address or the contents of `ringlet.wasm`; unset: the file beside the package's own script. */
  readonly wasm?: WasmSource | undefined;
}

/** Options for a group of one. */
export type AloneOptions = Pick<JoinOptions, 'dedicatedWorker' | 'wasm' | 'onProgress'>;

/** A group that is being joined: its engine, and the functions that join and end it. */
interface Joining {
  readonly engine: Engine;
  join(): Promise<Membership>;
  close(): Promise<void>;
}

/** @internal Joins on a platform, with the module that `factory` makes. */
export async function joinOn(platform: Platform, factory: ModuleFactory, options: JoinOptions): Promise<Group> {
  // Groups formed anew are joined by these same options too: what a join adds to them must not add up.
  const again: Entrance = new Entrance((anew) => start(platform, factory, anew, requestOf(platform, anew), again), options);
  return start(platform, factory, options, requestOf(platform, options), again);
}

/** @internal Makes a group of this side alone. */
export function aloneOn(platform: Platform, factory: ModuleFactory, options: AloneOptions): Promise<Group> {
  const none = { connectTimeout: undefined, operationTimeout: undefined };
  return start(platform, factory, options, { host: '', port: 0, secure: false, token: '', encrypt: false, name: platform.name, ...none });
}

async function start(
  platform: Platform,
  factory: ModuleFactory,
  options: AloneOptions & Pick<JoinOptions, 'signal'>,
  request: JoinRequest,
  again?: Entrance,
): Promise<Group> {
  const { signal } = options;
  const onProgress = options.onProgress ?? (() => undefined);
  if (signal?.aborted) throw new AbortError('joining was not started: its AbortSignal had fired before', signal.reason);

  const joining = options.dedicatedWorker
    ? joinRemotely(workerChannel(platform, options.dedicatedWorker), request, options.wasm, onProgress)
    : await joinHere(platform, factory, request, options.wasm, onProgress);
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new AbortError('joining was aborted; the group goes on waiting for its other ranks', signal?.reason));
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
  });
  try {
    const membership = await Promise.race([joining.join(), aborted]);
    return new Group(joining.engine, membership, new Succession(joining.engine, again, request.operationTimeout));
  } catch (error) {
    void joining.close();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

async function joinHere(
  platform: Platform,
  factory: ModuleFactory,
  request: JoinRequest,
  wasm: WasmSource | undefined,
  onProgress: (progress: Progress) => void,
): Promise<Joining> {
  const engine = await LocalEngine.make(platform, factory, wasm, request.secure, onProgress);
  return { engine, join: () => engine.join(request), close: () => engine.close() };
}

function joinRemotely(
  channel: Channel,
  request: JoinRequest,
  wasm: WasmSource | undefined,
  onProgress: (progress: Progress) => void,
): Joining {
  const engine = new RemoteEngine(channel, onProgress);
  return { engine, join: () => engine.join(request, wasm), close: () => engine.close() };
}

// Each has held a group.
const used = new WeakSet<DedicatedWorker>();

function workerChannel(platform: Platform, given: true | DedicatedWorker | (() => DedicatedWorker)): Channel {
  if (given === true) return platform.startWorker();
  const worker = typeof given === 'function' ? given() : given;
  if (used.has(worker))
    throw new InvalidArgument('this Worker has ended with the group that it held; give a function that makes a new one');
  const channel = platform.connect(worker);
  used.add(worker);
  return channel;
}

/** @internal Turns the options into a request; throws `InvalidArgument` if they are not valid. */
export function requestOf(platform: Platform, options: JoinOptions): JoinRequest {
  const address = parseAddress(options.url);
  return {
    host: address.host,
    port: address.port,
    secure: address.secure,
    token: tokenOf(options.token) ?? address.token ?? '',
    encrypt: options.encrypt ?? address.encrypt,
    name: options.name ?? platform.name,
    connectTimeout: checkedTime('connectTimeout', options.connectTimeout),
    operationTimeout: checkedTime('operationTimeout', options.operationTimeout),
  };
}

function tokenOf(given: string | undefined): string | undefined {
  if (given === undefined || given === '') return given;
  const token = trimToken(given);
  // It would be taken for none, and the links would not be encrypted.
  if (token === '') throw new InvalidArgument('the token is nothing but white space; `ringlet token` makes one');
  return token;
}

function checkedTime(name: string, time: number | undefined): number | undefined {
  if (time === undefined || (time > 0 && time <= longestTimeout)) return time;
  throw new InvalidArgument(`${name} is ${time}; give milliseconds above 0, at most ${longestTimeout}, or leave it out`);
}
