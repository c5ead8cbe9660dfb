import type {
  AverageRequest,
  Engine,
  FsdpRequest,
  JoinRequest,
  Membership,
  Operation,
  Progress,
  Seat,
  SplitRequest,
  Synced,
  SyncRequest,
  Traffic,
  Placement,
  VoteRequest,
  WorldState,
} from '../engine.js';
import { AuthenticationError, Cancelled, failureOf, InvalidArgument, MismatchError, toError } from '../errors.js';
import type { Platform } from '../platform.js';
import type { WasmSource } from '../wasm_source.js';
import { type GradientCall, GradientCalls } from './gradient_calls.js';
import { type Host, type Listener, makeHost } from './host.js';
import type { RingletModule } from './module.js';
import { ModuleMemory } from './module_memory.js';
import { PlacedOperation } from './operations.js';
import { StreamOrder } from './stream_order.js';
import { strongToken } from './strong_token.js';
import { type Completion, Tickets } from './tickets.js';
import { timeoutForModule } from './timeouts.js';

/** Makes an instance of a module. */
export type ModuleFactory = (options: {
  host: Host;
  instantiateWasm(imports: WebAssembly.Imports, receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void): object;
}) => Promise<RingletModule>;

const trafficInterval = 250;
const left: Completion = { code: 6, rank: -1, text: 'the group was left', value: 0 };

/**
 * Returns an error if joining failed because of the token, else undefined. While joining, a mismatch is about the token or the peer's
 * version.
 */
function tokenError(error: unknown): AuthenticationError | undefined {
  if (!(error instanceof MismatchError) || !/\btokens?\b/.test(error.message)) return undefined;
  return new AuthenticationError(error.message, error.rank);
}

/** The core, as a wasm module in this realm: one instance for one world. */
export class LocalEngine implements Engine {
  readonly memory: ModuleMemory;
  readonly module: RingletModule;
  readonly #tickets = new Tickets();
  readonly #order = new StreamOrder();
  readonly #gradients: GradientCalls;
  readonly #onProgress: (progress: Progress) => void;
  readonly #stopWatching: () => void;
  // The operations under way of each group, because a group that still has some cannot be left.
  readonly #busy = new Map<number, { count: number; idle: (() => void)[] }>();
  #seat: Seat = { rank: -1, size: 0, guests: 0, elastic: false, epoch: 0 };
  #world = 0;
  #group = 0;
  // This side's user has left the world.
  #closing: Promise<void> | undefined;
  #leaving: Promise<void> | undefined;
  // How the world has failed, and how it stood then.
  #failure: Completion | undefined;
  #lastState: WorldState | undefined;
  #traffic: Traffic = { sent: 0, received: 0 };
  #toldTraffic = 0;
  readonly #listener: Listener = {
    completed: (ticket, code, rank, value, text) => this.#tickets.complete(ticket, { code, rank, text, value }),
    seat: (_world, rank, size, guests, present) => {
      this.#seat = { ...this.#seat, rank, size, guests };
      this.#tell({ kind: 'waiting', here: present, size });
    },
    knocking: () => {
      this.#seat = { ...this.#seat, elastic: true };
      this.#tell({ kind: 'knocking' });
    },
    failed: (_world, code, rank, text) => {
      this.#failure = { code, rank, text, value: 0 };
      this.#lastState = this.#readState();
      this.#tell({ kind: 'failed', failure: failureOf(code, text, rank) });
      // The links and timers of a world that nobody leaves would keep a program in Node running.
      void this.#leaveWorld();
    },
  };

  private constructor(platform: Platform, module: RingletModule, onProgress: (progress: Progress) => void) {
    // A program that an error has ended would keep its seat, and the others would wait for it.
    this.#stopWatching = platform.onUncaught(() => void this.close());
    this.module = module;
    this.memory = new ModuleMemory(module);
    this.#gradients = new GradientCalls(module, this.memory);
    this.#onProgress = onProgress;
  }

  /** Instantiates the module. The world exists once join() has succeeded. */
  static async make(
    platform: Platform,
    factory: ModuleFactory,
    source: WasmSource | undefined,
    secure: boolean,
    onProgress: (progress: Progress) => void,
  ): Promise<LocalEngine> {
    const compiled = await platform.compile(source);
    let engine: LocalEngine | undefined;
    const host = makeHost(platform, secure, () => {
      if (engine === undefined) throw new Error('the module told news before it was asked for any');
      return engine.#listener;
    });
    const module = await new Promise<RingletModule>((resolve, reject) => {
      factory({
        host,
        instantiateWasm: (imports, receive) => {
          WebAssembly.instantiate(compiled, imports).then((instance) => receive(instance, compiled), reject);
          return {};
        },
      }).then(resolve, reject);
    });
    engine = new LocalEngine(platform, module, onProgress);
    return engine;
  }

  get seat(): Seat {
    return this.#seat;
  }

  get traffic(): Traffic {
    if (this.#world > 0 && this.#leaving === undefined) {
      // The world's handle is invalid once the world has been left.
      this.#traffic = { sent: this.module._ringlet_bytes_sent(this.#world), received: this.module._ringlet_bytes_received(this.#world) };
    }
    return this.#traffic;
  }

  /** Joins the world, or makes one of this side alone. May be called once. */
  async join(request: JoinRequest): Promise<Membership> {
    if (request.port === 0) return this.#beAlone();
    this.#tell({ kind: 'connecting' });
    const texts = [request.host, strongToken(request.token), request.name].map((text) => this.memory.putText(text)) as [
      number,
      number,
      number,
    ];
    const times = [request.connectTimeout, request.operationTimeout].map(timeoutForModule);
    const encrypt = request.encrypt === undefined ? -1 : Number(request.encrypt);
    const joining = this.#tickets.open(
      (ticket) => {
        const [host, token, name] = texts;
        const [connect, operation] = times as [number, number];
        const world = this.module._ringlet_join(ticket, host, request.port, token, name, connect, operation, encrypt);
        this.#world = Math.max(world, 0);
        return this.#refusal(-Math.min(world, 0));
      },
      ({ value }) => {
        for (const text of texts) this.memory.release(text);
        // The world may fail, and be gone, before the promise is awaited.
        this.#seat = { ...this.#seat, epoch: this.module._ringlet_world_epoch(this.#world) };
        return this.#membershipOf(value);
      },
    );
    const membership = await joining.catch((error: unknown) => {
      throw tokenError(error) ?? error;
    });
    this.#group = membership.group;
    this.#tell({ kind: 'joined', ...this.#seat });
    return membership;
  }

  async algorithm(group: number, operation: string, bytes: number): Promise<string | undefined> {
    this.#checkGroup(group);
    const name = this.memory.lend([operation], (text = 0) => this.module._ringlet_group_algorithm(group, text, bytes));
    return name === 0 ? undefined : this.memory.text(name);
  }

  async placement(group: number): Promise<Placement> {
    this.#checkGroup(group);
    const size = this.module._ringlet_group_size(group);
    const ring = Array.from({ length: size }, (_, place) => this.module._ringlet_group_along_ring(group, 0, place));
    const text = this.module._ringlet_group_placement(group);
    return { ring, text: text === 0 ? '' : this.memory.text(text) };
  }

  run(operation: Operation): Promise<Uint8Array | undefined> {
    if (this.#closing !== undefined) return Promise.reject(this.#cancelled());
    const placed = new PlacedOperation(this.memory, operation, this.module._ringlet_group_rank(operation.group));
    return this.#track(
      operation,
      false,
      (ticket) => placed.start(this.module, ticket),
      ({ code }) => {
        const result = code === 0 ? placed.result() : undefined;
        placed.release();
        return result;
      },
    );
  }

  average(request: AverageRequest): Promise<void> {
    return this.#runGradients(request, this.#gradients.average(request));
  }

  applyFsdp(request: FsdpRequest): Promise<number | undefined> {
    return this.#runGradients(request, this.#gradients.fsdp(request));
  }

  sync(request: SyncRequest): Promise<Synced> {
    return this.#runGradients(request, this.#gradients.sync(request));
  }

  vote({ group, mine, trains, timeout }: VoteRequest): Promise<boolean> {
    if (this.#closing !== undefined) return Promise.reject(this.#cancelled());
    return this.#tickets.open(
      (ticket) =>
        this.#end ?? this.#refusal(this.module._ringlet_vote(ticket, group, timeoutForModule(timeout), Number(mine), Number(trains))),
      ({ code, value }) => code === 0 && value !== 0,
    );
  }

  split(request: SplitRequest): Promise<Membership | undefined> {
    if (this.#closing !== undefined) return Promise.reject(this.#cancelled());
    const { group, color, key, stream, timeout } = request;
    return this.#track(
      request,
      false,
      (ticket) => this.module._ringlet_split(ticket, group, stream, timeoutForModule(timeout), color, key),
      ({ code, value }) => (code === 0 && value > 0 ? this.#membershipOf(value) : undefined),
    );
  }

  async worldState(): Promise<WorldState> {
    if (this.#closing !== undefined) throw new InvalidArgument('this side has left this world');
    return this.#lastState ?? this.#readState();
  }

  #readState(): WorldState {
    const failure = this.#refusal(this.module._ringlet_world_failure(this.#world));
    const doors = Array.from({ length: this.#seat.size - this.#seat.guests }, (_, rank) =>
      this.memory.text(this.module._ringlet_world_door(this.#world, rank)),
    );
    return {
      failure: failure && failureOf(failure.code, failure.text, failure.rank),
      lineage: BigInt(this.memory.text(this.module._ringlet_world_lineage(this.#world))),
      doors,
    };
  }

  async revoke(): Promise<void> {
    if (this.#closing !== undefined) throw new InvalidArgument('this side has left this world');
    if (this.#failure !== undefined) return;
    const refusal = this.#refusal(this.module._ringlet_revoke(this.#world));
    if (refusal !== undefined) throw toError(failureOf(refusal.code, refusal.text, refusal.rank));
  }

  async forget(optimizer: number): Promise<void> {
    this.#gradients.forgetOptimizer(optimizer);
  }

  async leave(group: number): Promise<void> {
    if (group === this.#group) return this.close();
    await this.#idle(group);
    if (this.#closing !== undefined) return;
    this.#gradients.forget(group);
    this.module._ringlet_group_leave(group);
  }

  /** Leaves the world, or ends joining. Never rejects; may be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#leaveWorld().then(() => this.#tickets.completeAll(left));
    return this.#closing;
  }

  /**
   * Starts an operation as soon as its stream allows it: `start` calls the module with a ticket and returns its code. `finish` runs when
   * the operation has ended or has failed to start, and its result resolves the promise.
   */
  #track<T>(
    { group, stream }: Pick<Operation, 'group' | 'stream'>,
    isProcedure: boolean,
    start: (ticket: number) => number,
    finish: (completion: Completion) => T,
  ): Promise<T> {
    const busy = this.#busy.get(group) ?? { count: 0, idle: [] };
    this.#busy.set(group, busy);
    ++busy.count;
    const end = (completion: Completion): T => {
      if (--busy.count === 0) {
        this.#busy.delete(group);
        for (const resume of busy.idle) resume();
      }
      this.#tellTraffic();
      return finish(completion);
    };
    return this.#order.start(group, stream, isProcedure, () =>
      this.#tickets.open((ticket) => this.#end ?? this.#refusal(start(ticket)), end),
    );
  }

  #runGradients<T>(request: Pick<Operation, 'group' | 'stream'>, call: GradientCall<T>): Promise<T> {
    return this.#track(
      request,
      true,
      (ticket) => call.start(ticket),
      ({ code }) => call.finish(code === 0),
    );
  }

  #beAlone(): Membership {
    this.#world = this.module._ringlet_world_of_one();
    this.#group = this.module._ringlet_world_group(this.#world);
    this.#seat = { rank: 0, size: 1, guests: 0, elastic: false, epoch: 0 };
    this.#tell({ kind: 'joined', ...this.#seat });
    return this.#membershipOf(this.#group);
  }

  #leaveWorld(): Promise<void> {
    this.#stopWatching();
    void this.traffic;
    this.#leaving ??= this.#tickets
      .open(
        (ticket) => (this.#world > 0 ? this.#refusal(this.module._ringlet_leave(ticket, this.#world)) : left),
        () => undefined,
      )
      .catch(() => undefined);
    return this.#leaving;
  }

  /** Why nothing can be started any more; undefined as long as something can. */
  get #end(): Completion | undefined {
    return this.#closing === undefined ? this.#failure : left;
  }

  /** Throws why the module knows nothing of the group any more. */
  #checkGroup(group: number): void {
    if (this.#closing !== undefined) throw this.#cancelled();
    if (this.#failure !== undefined) throw toError(failureOf(this.#failure.code, this.#failure.text, this.#failure.rank));
    if (this.module._ringlet_group_size(group) < 0) throw new InvalidArgument('this group has been left');
  }

  #idle(group: number): Promise<void> {
    const busy = this.#busy.get(group);
    return busy === undefined ? Promise.resolve() : new Promise((resolve) => busy.idle.push(resolve));
  }

  #membershipOf(group: number): Membership {
    return { group, rank: this.module._ringlet_group_rank(group), size: this.module._ringlet_group_size(group) };
  }

  #refusal(code: number): Completion | undefined {
    if (code === 0) return undefined;
    return { code, rank: this.module._ringlet_error_rank(), text: this.memory.text(this.module._ringlet_error_text()), value: 0 };
  }

  #cancelled(): Cancelled {
    return new Cancelled('the group has been left; join again');
  }

  // Runs later, because an error that the caller's function throws must not get into the module's callbacks.
  #tell(progress: Progress): void {
    queueMicrotask(() => this.#onProgress(progress));
  }

  #tellTraffic(): void {
    const now = performance.now();
    if (now - this.#toldTraffic < trafficInterval) return;
    this.#toldTraffic = now;
    this.#tell({ kind: 'traffic', ...this.traffic });
  }
}
