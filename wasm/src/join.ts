import { parseAddress } from './addresses.js';
import { LocalEngine, type ModuleFactory } from './core/local_engine.js';
import type { Engine, JoinRequest, Membership, Progress } from './engine.js';
import { AbortError, InvalidArgument } from './errors.js';
import { Group } from './group.js';
import type { Platform } from './platform.js';
import type { Channel } from './remote/messages.js';
import { RemoteEngine } from './remote/remote_engine.js';
import { browserChannel } from './remote/worker_channel.js';
import type { WasmSource } from './wasm_source.js';

/** How to join. */
export interface JoinOptions {
  /** The link that `ringlet serve` prints (http://192.168.1.5:4711/#token=...), or ws://host:port. */
  readonly url: string | URL;
  /** What every member of the group knows; unset: the one in the link's fragment, or none. */
  readonly token?: string | undefined;
  /**
   * Whether what goes over the links is encrypted, which all ranks have to say alike; unset: as the link says ("&encrypt=off"), or else where
   * there is a token.
   */
  readonly encrypt?: boolean | undefined;
  /** Of this side, for people: "kitchen tablet". */
  readonly name?: string | undefined;
  /** Ends joining with an `AbortError`. Of no effect once `join` has ended. */
  readonly signal?: AbortSignal | undefined;
  /** News: who is here while joining, then the bytes that move, and the world's end where that was not asked for. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Runs the core in a Worker of its own: true, or a Worker of yours whose script is `import 'ringlet/worker'`. */
  readonly dedicatedWorker?: boolean | Worker | undefined;
  /** Milliseconds until rank 0 must have given this rank a seat; 60,000 unless given. How long all wait for the last one is rank 0's to say. */
  readonly connectTimeout?: number | undefined;
  /** Milliseconds that an operation may take from its start; 600,000 unless given. */
  readonly operationTimeout?: number | undefined;
  /** Where `ringlet.wasm` is, or what it is; unset: beside the package's own script. */
  readonly wasm?: WasmSource | undefined;
}

/** How to be a group of one. */
export type AloneOptions = Pick<JoinOptions, 'dedicatedWorker' | 'wasm' | 'onProgress'>;

/** What joining makes: an engine, and how it joins and ends. */
interface Joining {
  readonly engine: Engine;
  join(): Promise<Membership>;
  close(): Promise<void>;
}

/** Joins on a platform, with a module's factory. */
export async function joinOn(platform: Platform, factory: ModuleFactory, options: JoinOptions): Promise<Group> {
  return start(platform, factory, options, requestOf(platform, options));
}

/** A group of this side alone. */
export function aloneOn(platform: Platform, factory: ModuleFactory, options: AloneOptions): Promise<Group> {
  const none = { connectTimeout: undefined, operationTimeout: undefined };
  return start(platform, factory, options, { host: '', port: 0, secure: false, token: '', encrypt: false, name: platform.name, ...none });
}

async function start(
  platform: Platform,
  factory: ModuleFactory,
  options: AloneOptions & Pick<JoinOptions, 'signal'>,
  request: JoinRequest,
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
    return new Group(joining.engine, membership);
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

function workerChannel(platform: Platform, worker: true | Worker): Channel {
  return worker === true ? platform.startWorker() : browserChannel(worker);
}

/** What the options ask for; throws `InvalidArgument` where they do not fit. */
export function requestOf(platform: Platform, options: JoinOptions): JoinRequest {
  const address = parseAddress(options.url);
  return {
    host: address.host,
    port: address.port,
    secure: address.secure,
    token: options.token ?? address.token ?? '',
    encrypt: options.encrypt ?? address.encrypt,
    name: options.name ?? platform.name,
    connectTimeout: checkedTime('connectTimeout', options.connectTimeout),
    operationTimeout: checkedTime('operationTimeout', options.operationTimeout),
  };
}

function checkedTime(name: string, time: number | undefined): number | undefined {
  if (time === undefined || (time > 0 && time <= 0x7fffffff)) return time;
  throw new InvalidArgument(`${name} is ${time}; give milliseconds above 0, or leave it out`);
}
