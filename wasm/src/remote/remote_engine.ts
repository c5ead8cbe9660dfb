import type {
  AverageRequest,
  Engine,
  FsdpRequest,
  JoinRequest,
  Membership,
  NamedOperand,
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
import { Cancelled, type Failure, InvalidArgument, toError } from '../errors.js';
import type { WasmSource } from '../wasm_source.js';
import type { Channel, Reply, Request, Written } from './messages.js';

type Waiting = { resolve(value: never): void; reject(error: Error): void };
// The engine fills in the `id` of all requests.
type WithoutId<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never;

/** An engine whose core runs in a Worker of its own, so that none of it runs in this realm. */
export class RemoteEngine implements Engine {
  readonly memory = undefined;
  readonly #channel: Channel;
  readonly #onProgress: (progress: Progress) => void;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #seat: Seat = { rank: -1, size: 0, guests: 0, elastic: false, epoch: 0 };
  #traffic: Traffic = { sent: 0, received: 0 };
  #world = -1;
  #closing: Promise<void> | undefined;
  #retiring: Promise<void> | undefined;
  // Why the Worker is not asked any more, and how its world stood: this has failed, or the Worker has ended by itself.
  #ended: (WorldState & { readonly failure: Failure }) | undefined;

  constructor(channel: Channel, onProgress: (progress: Progress) => void) {
    this.#channel = channel;
    this.#onProgress = onProgress;
    channel.onMessage((reply: Reply) => this.#hear(reply));
    channel.onFailure((message) => this.#lose({ code: 'io_error', message: `the group's Worker ended: ${message}`, rank: -1 }));
  }

  get seat(): Seat {
    return this.#seat;
  }

  get traffic(): Traffic {
    return this.#traffic;
  }

  /** Joins the world. May be called once. */
  async join(request: JoinRequest, wasm: WasmSource | undefined): Promise<Membership> {
    const membership = await this.#ask<Membership>({ kind: 'join', request, wasm: wasm instanceof URL ? wasm.href : wasm });
    this.#world = membership.group;
    return membership;
  }

  async run(operation: Operation): Promise<Uint8Array | undefined> {
    const { input, output } = operation;
    // Copies only the elements, since they may be a small part of their buffer. The copy is then moved to the Worker, not copied again.
    const bytes = input?.at instanceof Uint8Array ? input.at.slice() : undefined;
    const detached: Operation = {
      ...operation,
      ...(input === undefined || bytes === undefined ? {} : { input: { ...input, at: bytes } }),
      ...(output === undefined ? {} : { output: { ...output, at: undefined } }),
    };
    const result = await this.#ask<Uint8Array | undefined>({ kind: 'run', operation: detached }, bytes === undefined ? [] : [bytes.buffer]);
    if (!(output?.at instanceof Uint8Array) || result === undefined) return result;
    output.at.set(result);
    return undefined;
  }

  async average(request: AverageRequest): Promise<void> {
    const copies = copyLeaves(request.leaves);
    const { leaves } = await this.#ask<Written>({ kind: 'average', request: { ...request, leaves: copies } }, buffersOf(copies));
    writeBack(request.leaves, leaves);
  }

  async applyFsdp(request: FsdpRequest): Promise<number | undefined> {
    const [gradients, parameters] = [copyLeaves(request.gradients), copyLeaves(request.parameters)];
    const detached = { ...request, gradients, parameters };
    const { leaves, norm } = await this.#ask<Written>({ kind: 'fsdp', request: detached }, buffersOf([...gradients, ...parameters]));
    writeBack(request.parameters, leaves);
    return norm;
  }

  async sync(request: SyncRequest): Promise<Synced> {
    const copies = copyLeaves(request.state);
    const { leaves, synced } = await this.#ask<Written & { synced: Synced }>(
      { kind: 'sync', request: { ...request, state: copies } },
      buffersOf(copies),
    );
    if (synced.taken) writeBack(request.state, leaves);
    return synced;
  }

  vote(request: VoteRequest): Promise<boolean> {
    return this.#ask({ kind: 'vote', request });
  }

  split(request: SplitRequest): Promise<Membership | undefined> {
    return this.#ask({ kind: 'split', request });
  }

  algorithm(group: number, operation: string, bytes: number): Promise<string | undefined> {
    return this.#ask({ kind: 'algorithm', group, operation, bytes });
  }

  placement(group: number): Promise<Placement> {
    return this.#ask({ kind: 'placement', group });
  }

  async worldState(): Promise<WorldState> {
    if (this.#closing !== undefined) throw new InvalidArgument('this side has left this world');
    return this.#ended ?? this.#ask({ kind: 'state' });
  }

  async revoke(): Promise<void> {
    if (this.#closing !== undefined) throw new InvalidArgument('this side has left this world');
    if (this.#ended === undefined) await this.#ask({ kind: 'revoke' });
  }

  async forget(optimizer: number): Promise<void> {
    if (this.#closing === undefined) await this.#ask({ kind: 'forget', optimizer }).catch(() => undefined);
  }

  async leave(group: number): Promise<void> {
    if (group === this.#world) return this.close();
    if (this.#closing === undefined) await this.#ask({ kind: 'leave', group }).catch(() => undefined);
  }

  /** Leaves the world or ends joining, and then ends the Worker. Never rejects; may be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#retiring ?? this.#leaveWorld({ code: 'cancelled', message: 'the group was left', rank: -1 });
    return this.#closing;
  }

  /** Leaves the world and ends the Worker. What has no answer then fails for the given reason. */
  async #leaveWorld(reason: Failure): Promise<void> {
    await this.#send({ kind: 'leave', group: this.#world }).catch(() => undefined);
    this.#channel.end();
    this.#failAll(reason);
  }

  /** Ends the Worker of a world that has failed, since it would keep a program in Node running. */
  async #retire(failure: Failure): Promise<void> {
    const state = await this.#send<WorldState>({ kind: 'state' }).catch(() => ({ lineage: 0n, doors: [] }));
    const leaving = this.#leaveWorld(failure);
    this.#ended = { ...state, failure };
    await leaving;
  }

  /** The Worker has failed. It is ended, since one in which an error has occurred would keep its seat in the world. */
  #lose(failure: Failure): void {
    this.#channel.end();
    if (this.#ended !== undefined || this.#closing !== undefined) return this.#failAll(failure);
    // Where its world has failed before, that is why.
    const isNews = this.#world >= 0 && this.#retiring === undefined;
    this.#ended = { failure, lineage: 0n, doors: [] };
    this.#failAll(failure);
    if (isNews) this.#onProgress({ kind: 'failed', failure });
  }

  #ask<T>(request: WithoutId<Request>, transfer: ArrayBuffer[] = []): Promise<T> {
    if (this.#closing !== undefined) return Promise.reject(new Cancelled('the group has been left; join again'));
    return this.#send(request, transfer);
  }

  #send<T>(request: WithoutId<Request>, transfer: ArrayBuffer[] = []): Promise<T> {
    if (this.#ended !== undefined) return Promise.reject(toError(this.#ended.failure));
    return new Promise<T>((resolve, reject) => {
      const id = ++this.#last;
      this.#waiting.set(id, { resolve, reject });
      this.#channel.post({ ...request, id } as Request, transfer);
    });
  }

  #hear(reply: Reply): void {
    if (reply.kind === 'progress') return this.#note(reply.progress);
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if (reply.kind === 'done') waiting?.resolve(reply.value as never);
    else waiting?.reject(toError(reply.failure));
  }

  #note(progress: Progress): void {
    if (progress.kind === 'joined') {
      const { kind, ...seat } = progress;
      this.#seat = seat;
    }
    if (progress.kind === 'failed') this.#retiring ??= this.#retire(progress.failure);
    if (progress.kind === 'traffic') this.#traffic = { sent: progress.sent, received: progress.received };
    this.#onProgress(progress);
  }

  #failAll(failure: Failure): void {
    for (const { reject } of this.#waiting.values()) reject(toError(failure));
    this.#waiting.clear();
  }
}

type Copy = NamedOperand & { readonly at: Uint8Array<ArrayBuffer> };

function copyLeaves(leaves: readonly NamedOperand[]): Copy[] {
  return leaves.map((leaf) => ({ ...leaf, at: (leaf.at as Uint8Array).slice() }));
}

function buffersOf(copies: readonly Copy[]): ArrayBuffer[] {
  return copies.map(({ at }) => at.buffer);
}

function writeBack(leaves: readonly NamedOperand[], results: readonly Uint8Array[]): void {
  leaves.forEach(({ at }, index) => (at as Uint8Array).set(results[index] ?? []));
}
