import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinOn, type JoinOptions } from '../../src/join.js';
import type { Platform } from '../../src/platform.js';
import type { Channel, Reply, Request } from '../../src/remote/messages.js';
import { RemoteEngine } from '../../src/remote/remote_engine.js';

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

test('a Worker holds one group in its life; a function makes others', async () => {
  const platform = { name: 'test' } as Platform;
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
  const join = (dedicatedWorker: JoinOptions['dedicatedWorker']): Promise<unknown> =>
    joinOn(platform, (() => undefined) as never, { url: 'http://127.0.0.1:1/', dedicatedWorker });
  const one = make();
  await join(one);
  await assert.rejects(join(one), { code: 'invalid_argument', message: /give a function/ });
  await join(make);
  await join(make);
  assert.equal(made.length, 3);
});
