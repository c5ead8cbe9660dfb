import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker as NodeWorker } from 'node:worker_threads';
import type { Progress } from '../../src/engine.js';
import type { Group } from '../../src/group.js';
import { nodeChannel, nodePlatform } from '../../src/node_platform.js';
import { joinOn, type JoinOptions } from '../../src/join.js';
import type { Platform } from '../../src/platform.js';
import type { Channel, Reply, Request } from '../../src/remote/messages.js';
import { RemoteEngine } from '../../src/remote/remote_engine.js';
import { browserChannel, scopeChannel, type WorkerScope } from '../../src/remote/worker_channel.js';

/** A Worker that answers what it is told to, and may end by itself. */
class ScriptedChannel implements Channel {
  readonly posted: string[] = [];
  #onMessage: (reply: Reply) => void = () => undefined;
  fail: (message: string) => void = () => undefined;

  post(message: Request | Reply): void {
    this.posted.push(message.kind);
    const { id } = message as Request;
    if (message.kind === 'join') queueMicrotask(() => this.#onMessage({ kind: 'done', id, value: { group: 1, rank: 1, size: 2 } }));
  }
  onMessage(handler: (message: never) => void): void {
    this.#onMessage = handler as (reply: Reply) => void;
  }
  onFailure(handler: (message: string) => void): void {
    this.fail = handler;
  }
  tell(reply: Reply): void {
    this.#onMessage(reply);
  }
  end(): void {
    this.posted.push('end');
  }
}

test('a Worker that has ended keeps nobody waiting', async () => {
  const channel = new ScriptedChannel();
  const engine = new RemoteEngine(channel, () => undefined);
  await engine.join({} as never, undefined);
  const pending = engine.vote({ group: 1, mine: true, trains: false, timeout: undefined });
  channel.fail('out of memory');
  const ended = { code: 'io_error', message: /Worker ended: out of memory/ };
  await assert.rejects(pending, ended);
  await assert.rejects(engine.placement(1), ended);
  assert.match((await engine.worldState()).failure?.message ?? '', /out of memory/);
  await engine.revoke();
  await engine.close();
  await assert.rejects(engine.worldState(), { code: 'invalid_argument', message: /has left/ });
  await assert.rejects(engine.revoke(), { code: 'invalid_argument', message: /has left/ });
});

test('the Worker of a world that has failed ends, and what it knew is kept', async () => {
  const channel = new ScriptedChannel();
  const engine = new RemoteEngine(channel, () => undefined);
  await engine.join({} as never, undefined);
  const failure = { code: 'peer_lost', message: 'lost rank 0', rank: 0 } as const;
  const state = { failure, lineage: 5n, doors: ['10.0.0.1:7000'] };
  channel.tell({ kind: 'progress', progress: { kind: 'failed', failure } });
  channel.tell({ kind: 'done', id: 2, value: state });
  await new Promise(setImmediate);
  assert.deepEqual(channel.posted, ['join', 'state', 'leave']);
  await assert.rejects(engine.placement(1), failure);
  assert.deepEqual(await engine.worldState(), state);
  const closed = engine.close();
  channel.tell({ kind: 'done', id: 3, value: undefined });
  await closed;
  assert.deepEqual(channel.posted, ['join', 'state', 'leave', 'end']);
});

test('a Worker in which an error has occurred is ended, so that it keeps no seat, and the program is told once', async () => {
  const channel = new ScriptedChannel();
  const told: string[] = [];
  const engine = new RemoteEngine(channel, ({ kind }) => void told.push(kind));
  await engine.join({} as never, undefined);
  channel.fail('out of memory');
  assert.deepEqual(channel.posted, ['join', 'end']);
  channel.fail('it has ended with code 1');
  await assert.rejects(engine.placement(1), { message: /out of memory/ });
  assert.deepEqual(told, ['failed']);
});

test('a Worker that ends while its world is left, or asked why it has failed, keeps nobody waiting', async () => {
  const left = new ScriptedChannel();
  const leaving = new RemoteEngine(left, () => undefined);
  await leaving.join({} as never, undefined);
  const closed = leaving.close();
  left.fail('it has ended with code 1');
  await closed;
  const channel = new ScriptedChannel();
  const engine = new RemoteEngine(channel, () => undefined);
  await engine.join({} as never, undefined);
  const failure = { code: 'peer_lost', message: 'lost rank 0', rank: 0 } as const;
  channel.tell({ kind: 'progress', progress: { kind: 'failed', failure } });
  channel.fail('it has ended with code 1');
  await engine.close();
  await assert.rejects(engine.run({ kind: 'barrier', group: 1, stream: 0, timeout: undefined }), { code: 'cancelled' });
});

/** A Worker of a browser in whose thread runs what `hear` does with a message. */
class PagesWorker extends EventTarget {
  isThere = true;
  terminated = 0;
  hear: (message: unknown) => void = () => undefined;

  postMessage(message: unknown): void {
    if (this.isThere) this.hear(message);
  }
  say(data: unknown): void {
    this.dispatchEvent(new MessageEvent('message', { data }));
  }
  terminate(): void {
    ++this.terminated;
  }
}

/** Connects both ends of the channel of a browser, and returns what they hear. */
function connect(): { worker: PagesWorker; page: Channel; heard: { page: unknown[]; worker: unknown[] } } {
  const worker = new PagesWorker();
  const heard = { page: [] as unknown[], worker: [] as unknown[] };
  const scope: WorkerScope = {
    postMessage: (message) => worker.say(message),
    addEventListener: (type, handler) => {
      if (type === 'message') worker.hear = (data) => handler(new MessageEvent('message', { data }));
    },
  };
  scopeChannel(scope).onMessage((message) => heard.worker.push(message));
  const page = browserChannel(worker as unknown as Worker);
  page.onMessage((message) => heard.page.push(message));
  return { worker, page, heard };
}

test("a browser's Worker that has ended without a word is noticed; one that is only slow, or was frozen with its page, is not", (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { worker, page, heard } = connect();
  const failures: string[] = [];
  page.onFailure((message) => failures.push(message));
  t.mock.timers.tick(600_000);
  worker.isThere = false;
  t.mock.timers.tick(55_000);
  worker.isThere = true;
  t.mock.timers.tick(600_000);
  assert.deepEqual(failures, []);
  worker.isThere = false;
  t.mock.timers.tick(59_000);
  assert.deepEqual(failures, []);
  t.mock.timers.tick(6000);
  assert.deepEqual(failures, ['it has not answered for 60 s']);
  page.end();
  t.mock.timers.tick(600_000);
  assert.equal(failures.length, 1);
  assert.equal(worker.terminated, 1);
  assert.deepEqual(heard, { page: [], worker: [] });
});

test('a Worker of Node that has ended without an error is noticed', { timeout: 30_000 }, async () => {
  const engine = new RemoteEngine(nodeChannel(new NodeWorker('process.exit(3)', { eval: true })), () => undefined);
  await assert.rejects(engine.join({} as never, undefined), { code: 'io_error', message: /it has ended with code 3/ });
  await engine.close();
});

const withWorkers = { name: 'test', connect: (worker) => browserChannel(worker as Worker) } as Platform;

test('a Worker holds one group in its life; a function makes others', async () => {
  const made: EventTarget[] = [];
  const make = (): Worker => {
    const worker = Object.assign(new EventTarget(), {
      terminate: () => undefined,
      postMessage: ({ id }: Request) =>
        queueMicrotask(() =>
          worker.dispatchEvent(new MessageEvent('message', { data: { kind: 'done', id, value: { group: 1, rank: 0, size: 1 } } })),
        ),
    });
    made.push(worker);
    return worker as unknown as Worker;
  };
  const join = (dedicatedWorker: JoinOptions['dedicatedWorker']): Promise<Group> =>
    joinOn(withWorkers, (() => undefined) as never, { url: 'http://127.0.0.1:1/', dedicatedWorker });
  const one = make();
  const groups = [await join(one)];
  await assert.rejects(join(one), { code: 'invalid_argument', message: /give a function/ });
  groups.push(await join(make), await join(make));
  assert.equal(made.length, 3);
  // Pages ask their Workers until then whether they are there.
  await Promise.all(groups.map((group) => group.leave()));
});

/** Makes Workers each of which joins a world that goes on, and says at once that it has failed. */
function makeFailing(): Worker {
  const worker = new PagesWorker();
  const failure = { code: 'peer_lost', message: 'rank 0 was lost', rank: 0 } as const;
  const tell = (progress: Progress): void => worker.say({ kind: 'progress', progress });
  worker.hear = (message) => {
    const { kind, id } = message as Request;
    queueMicrotask(() => {
      if (kind === 'join') tell({ kind: 'knocking' });
      if (kind === 'join') tell({ kind: 'joined', rank: 1, size: 2, guests: 1, elastic: true, epoch: 0 });
      const state = { failure, lineage: 1n, doors: ['a:1'] };
      worker.say({ kind: 'done', id, value: kind === 'join' ? { group: 1, rank: 1, size: 2 } : state });
      if (kind === 'join') tell({ kind: 'failed', failure });
    });
  };
  return worker as unknown as Worker;
}

test('onProgress is called in the same way however often the group was formed anew', async () => {
  const depths: number[] = [];
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = Infinity;
  const onProgress = ({ kind }: Progress): void => {
    if (kind === 'knocking') depths.push(new Error().stack?.split('\n').length ?? 0);
  };
  const options = { url: 'http://127.0.0.1:1/', dedicatedWorker: makeFailing, onProgress };
  let group = await joinOn(withWorkers, (() => undefined) as never, options);
  for (let time = 0; time < 4; ++time) group = (await group.reform()).world;
  Error.stackTraceLimit = stackTraceLimit;
  assert.equal(depths.length, 5);
  assert.deepEqual(new Set(depths.slice(1)).size, 1, `${depths}`);
  await group.leave();
});

test('what is no Worker of the platform is refused', async () => {
  const join = (dedicatedWorker: unknown): Promise<unknown> =>
    joinOn(nodePlatform, (() => undefined) as never, { url: 'http://127.0.0.1:1/', dedicatedWorker: dedicatedWorker as never });
  for (const [given, kind] of [
    [new PagesWorker(), 'an object of class PagesWorker'],
    ['worker.js', 'the string worker.js'],
    [() => undefined, 'undefined'],
  ] as const)
    await assert.rejects(join(given), { name: 'InvalidArgument', message: new RegExp(`is ${kind}; give true, a Worker of node`) });
});
