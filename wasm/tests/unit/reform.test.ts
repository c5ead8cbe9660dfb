import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Engine, Membership, Seat, WorldState } from '../../src/engine.js';
import {
  AbortError,
  AuthenticationError,
  InvalidArgument,
  MismatchError,
  PeerLost,
  ProtocolError,
  type RingletError,
  Timeout,
  toFailure,
} from '../../src/errors.js';
import { Group } from '../../src/group.js';
import type { JoinOptions } from '../../src/join.js';
import { Entrance, type Join, Succession } from '../../src/reform.js';

const lost = new PeerLost('rank 2 was lost', 2);

/** A world of which only this is known. */
class World {
  readonly seat: Seat;
  readonly calls: string[] = [];
  failure: RingletError | undefined;
  doors: readonly string[];

  constructor({ doors = ['a:1', 'b:1', 'c:1'], failure = lost as RingletError | undefined, ...seat }: Partial<World> & Partial<Seat> = {}) {
    this.seat = { rank: 3, size: 5, guests: 2, elastic: true, epoch: 7, ...seat };
    this.doors = doors;
    this.failure = failure;
  }
  async worldState(): Promise<WorldState> {
    return { failure: this.failure && toFailure(this.failure), lineage: 11n, doors: this.doors };
  }
  async split(): Promise<Membership> {
    return { group: 8, rank: 0, size: 1 };
  }
  async revoke(): Promise<void> {
    this.calls.push('revoke');
  }
  async leave(group: number): Promise<void> {
    this.calls.push(`leave ${group}`);
  }
  async close(): Promise<void> {
    this.calls.push('close');
  }
  group(join?: Join, where: JoinOptions = { url: 'ws://a:1/#token=t' }): Group {
    const engine = this as unknown as Engine;
    const entrance = join && new Entrance(join, where);
    return new Group(engine, { group: 7, rank: this.seat.rank, size: this.seat.size }, new Succession(engine, entrance));
  }
}

/** Each attempt to join gets the next of these worlds, or fails so; an attempt that finds a door says so first. */
class Others {
  attempts = 0;
  readonly places: string[] = [];
  readonly #outcomes: (World | Error | readonly ['knocks', Error])[];

  constructor(...outcomes: (World | Error | readonly ['knocks', Error])[]) {
    this.#outcomes = outcomes;
  }
  readonly join = async ({ onProgress, url, connectTimeout }: JoinOptions): Promise<Group> => {
    ++this.attempts;
    this.places.push(`${url} for ${connectTimeout}`);
    const next = this.#outcomes.shift() ?? new Error('nobody is there to join');
    if (next instanceof World) return next.group();
    if (next instanceof Error) throw next;
    onProgress?.({ kind: 'knocking' });
    throw next[1];
  };
}

const silent: Join = ({ signal }) =>
  new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new AbortError('joining was aborted', signal.reason))));

test('it joins again, also after what passes, and says who is who', async () => {
  const others = new Others(
    lost,
    ['knocks', new Timeout('not all have met')],
    new World({ doors: ['c:1', 'a:1'], rank: 2, size: 4, guests: 2 }),
  );
  const world = new World();
  const { before, lost: gone, cause, lineage, ...rest } = await world.group(others.join).reform();
  assert.equal(others.attempts, 3);
  assert.deepEqual([before, gone, lineage], [[2, 0, 3, -1], [1, 4], 11n]);
  assert.deepEqual([cause.code, cause.rank, cause.message], ['peer_lost', 2, 'rank 2 was lost']);
  assert.deepEqual([rest.world.epoch, rest.world.size], [7, 4]);
  assert.deepEqual(world.calls, ['close']);
});

test('a door that is unknown is nobody', async () => {
  const others = new Others(new World({ doors: ['', 'd:1'], rank: 2, size: 3, guests: 1 }));
  const { before, lost: gone } = await new World({ doors: ['', 'b:1', 'c:1'] }).group(others.join).reform();
  assert.deepEqual(
    [before, gone],
    [
      [-1, -1, 3],
      [0, 1, 2, 4],
    ],
  );
});

test('it ends where joining again is of no use', async () => {
  for (const [outcome, wanted] of [
    [new Timeout('nobody answers'), { code: 'peer_lost', rank: 2, message: /^rank 2 was lost; .*nobody answers$/ }],
    [new AuthenticationError('another token'), { code: 'authentication' }],
    [new MismatchError('another version'), { code: 'mismatch' }],
    [new ProtocolError('something else answers'), { code: 'protocol_error' }],
    [new InvalidArgument('no such option'), { code: 'invalid_argument' }],
    [new Error('the module cannot be loaded'), { message: 'the module cannot be loaded' }],
  ] as const) {
    const others = new Others(outcome);
    await assert.rejects(new World({ doors: [] }).group(others.join).reform(), wanted);
    assert.equal(others.attempts, 1);
  }
});

test('it looks for the others at the doors of the native ranks, too, and first where it has found them', async () => {
  const nobody = new Timeout('nobody answers');
  const others = new Others(
    nobody,
    nobody,
    new ProtocolError('something else answers'),
    nobody,
    lost,
    nobody,
    ['knocks', new Timeout('not all have met')],
    new World({ doors: ['b:1'], rank: 1, size: 2, guests: 1 }),
    nobody,
    new World({ doors: ['b:1', 'd:1'], rank: 2, size: 3, guests: 1 }),
  );
  const entrance = new Entrance(others.join, { url: 'http://a:1/#token=t' });
  const { signal } = new AbortController();
  await entrance.joinPersistently(signal, lost, ['', 'a:1', 'b:1', '[::1]:2']);
  await entrance.joinPersistently(signal, lost, ['b:1', 'd:1']);
  const [a, b, c] = ['a:1', 'b:1', '[::1]:2'].map((place) => `http://${place}/#token=t`);
  assert.deepEqual(others.places, [
    // What is no Ringlet is not asked again.
    ...[`${a} for 1500`, `${b} for 1500`, `${c} for 1500`, `${a} for 3000`, `${b} for 3000`, `${b} for 3000`],
    ...[`${a} for 6000`, `${a} for 6000`],
    ...[`${a} for 1500`, `${b} for 1500`],
  ]);
  await assert.rejects(new World().group(new Others(nobody, nobody).join, { url: 'ws://a:1', connectTimeout: 60 }).reform(), {
    code: 'peer_lost',
    message: 'rank 2 was lost; and the others could not be joined again at any of a:1, b:1, c:1 within 60 ms: nobody answers',
  });
  await assert.rejects(new World().group(new Others(...Array<Error>(3).fill(new AuthenticationError('another token'))).join).reform(), {
    code: 'authentication',
  });
  const secure = new Others(nobody);
  await assert.rejects(new World().group(secure.join, { url: 'https://a:1/#token=t' }).reform(), { code: 'peer_lost' });
  assert.deepEqual(secure.places, ['https://a:1/#token=t for 60000']);
});

test('a signal, the time and leave() end it; after the first two it may be called again', async () => {
  const signal = new AbortController();
  const group = new World().group(silent);
  const waiting = group.reform({ signal: signal.signal });
  await assert.rejects(group.reform(), { code: 'invalid_argument', message: /under way/ });
  signal.abort('enough');
  await assert.rejects(waiting, { code: 'aborted', cause: 'enough' });
  await assert.rejects(group.reform({ signal: signal.signal }), { code: 'aborted', message: /was not started/ });
  await assert.rejects(group.reform({ timeout: 80 }), { code: 'timed_out', message: /within 80 ms, since rank 2 was lost/ });
  const again = group.reform();
  await group.leave();
  await assert.rejects(again, { code: 'cancelled' });
  await assert.rejects(group.reform(), { code: 'invalid_argument', message: /has left/ });
});

test('it is refused where nothing is to be formed anew', async () => {
  const refused = (group: Group, message: RegExp): Promise<void> => assert.rejects(group.reform(), { code: 'invalid_argument', message });
  const { join } = new Others();
  await refused(new World({ elastic: false }).group(join), /not elastic/);
  await refused(new World().group(), /not elastic/);
  const running = new World();
  running.failure = undefined;
  await refused(running.group(join), /has not failed/);
  assert.deepEqual(running.calls, []);
  await assert.rejects(new World().group(join).reform({ timeout: 0 }), { code: 'invalid_argument', message: /0 ms/ });
});

test('all groups of a world go on together, once', async () => {
  const others = new Others(new World({ rank: 1, size: 2, guests: 1, doors: ['a:1'] }));
  const whole = new World().group(others.join);
  const part = await whole.split(0);
  assert.ok(part !== undefined);
  assert.equal(part.epoch, 7);
  await part.leave();
  assert.deepEqual((await part.reform()).before, [0, 3]);
  await assert.rejects(whole.reform(), { code: 'invalid_argument', message: /has left/ });
});

test('revoke() is for elastic groups', async () => {
  const elastic = new World();
  await elastic.group().revoke();
  assert.deepEqual(elastic.calls, ['revoke']);
  await assert.rejects(new World({ elastic: false }).group().revoke(), { code: 'invalid_argument', message: /not elastic/ });
});
