import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ElasticLoop, type ElasticTrainerOptions, type Step } from '../../src/elastic.js';
import type { AverageRequest, Engine, Operation, Synced, SyncRequest, VoteRequest, WorldState } from '../../src/engine.js';
import { AuthenticationError, MismatchError, PeerLost, type RingletError, Timeout } from '../../src/errors.js';
import { Group } from '../../src/group.js';
import type { JoinOptions } from '../../src/join.js';
import { StateValues } from '../../src/state_values.js';
import type { Tree } from '../../src/trees.js';

/** What the others do in one world: each entry is a failure of a call, or nothing where it goes well. */
interface World {
  readonly size?: number;
  readonly rank?: number;
  readonly guests?: number;
  readonly isElastic?: boolean;
  /** The others' state: `taken` where this side gets it. */
  readonly synced?: Partial<Synced>;
  readonly isSharded?: boolean;
  /** The last step and the batch of native rank 0. */
  readonly plan?: readonly [bigint, bigint];
  /** By native rank: whether its training has begun. */
  readonly begun?: readonly boolean[];
  readonly syncFails?: RingletError;
  readonly averages?: readonly (RingletError | undefined)[];
  readonly votes?: readonly (RingletError | false | undefined)[];
}

const planOf = (told: Uint8Array): BigUint64Array => new BigUint64Array(told.slice().buffer).slice(5, 7);

/** A world of others who do as they are told. */
class ScriptedEngine implements Engine {
  readonly seat;
  readonly traffic = { sent: 0, received: 0 };
  readonly memory = undefined;
  readonly calls: string[] = [];
  readonly averaged: AverageRequest[] = [];
  sync_: SyncRequest | undefined;
  #votes: (RingletError | false | undefined)[];
  #averages: (RingletError | undefined)[];

  constructor(readonly world: World) {
    const { size = 3, rank = 2, guests = 1, isElastic = true } = world;
    this.seat = { rank, size, guests, elastic: isElastic, epoch: 4 };
    this.#votes = [...(world.votes ?? [])];
    this.#averages = [...(world.averages ?? [])];
  }

  async run({ kind, input, output }: Operation): Promise<Uint8Array> {
    this.calls.push(kind);
    const told = new BigUint64Array((output?.shape[0] ?? 0) as number);
    if (this.world.isSharded) told[3] = 1n;
    // The others' plan is that of this side, unless it is given.
    if (input?.at instanceof Uint8Array && kind === 'all_gather') told.set(planOf(input.at), 5);
    if (this.world.plan !== undefined) told.set(this.world.plan, 5);
    // Of those that have joined only what they are is told right.
    for (const [rank, begun] of (this.world.begun ?? []).entries()) told[9 * rank] = begun ? 1n : 0n;
    return new Uint8Array(told.buffer);
  }
  async split({ color }: { color: number }): Promise<undefined> {
    this.calls.push(`split ${color}`);
  }
  async sync(request: SyncRequest): Promise<Synced> {
    this.calls.push('sync');
    this.sync_ = request;
    if (this.world.syncFails !== undefined) throw this.world.syncFails;
    return { taken: false, step: request.step, values: '{}', ...this.world.synced };
  }
  async average(request: AverageRequest): Promise<void> {
    this.calls.push('average');
    this.averaged.push(request);
    const failure = this.#averages.shift();
    if (failure !== undefined) throw failure;
  }
  async vote({ trains }: VoteRequest): Promise<boolean> {
    assert.ok(trains);
    this.calls.push('vote');
    const outcome = this.#votes.shift();
    if (outcome !== undefined && outcome !== false) throw outcome;
    return outcome !== false;
  }
  async forget(): Promise<void> {}
  async leave(): Promise<void> {
    this.calls.push('leave');
  }
  async worldState(): Promise<WorldState> {
    return { failure: undefined, lineage: 0n, doors: [] };
  }
  async revoke(): Promise<void> {}
  async close(): Promise<void> {}
  async applyFsdp(): Promise<undefined> {}
  async algorithm(): Promise<undefined> {}
  async placement(): Promise<never> {
    throw new Error('nobody asks');
  }
}

class Trainer extends ElasticLoop {
  readonly engines: ScriptedEngine[];

  /** Each attempt to join gets the next of these worlds, or fails so. */
  constructor(
    worlds: readonly (World | RingletError)[],
    state: Tree = { model: new Float32Array(1) },
    options: ElasticTrainerOptions = {},
  ) {
    const engines: ScriptedEngine[] = [];
    const left = [...worlds];
    const join = async ({ onProgress }: JoinOptions): Promise<Group> => {
      const next = left.shift();
      if (next === undefined) throw new Error('nobody is there to join');
      if (next instanceof Error) throw next;
      const engine = new ScriptedEngine(next);
      if (engine.seat.elastic) onProgress?.({ kind: 'knocking' });
      engines.push(engine);
      return new Group(engine, { group: 7, rank: engine.seat.rank, size: engine.seat.size });
    };
    super(join, { url: 'http://127.0.0.1:1/' }, state, options);
    this.engines = engines;
  }
}

const lost = (): PeerLost => new PeerLost('rank 1 was lost', 1);
const gradients = new Float32Array(4);
const counted = (done: number[]): ((step: Step) => Promise<void>) => {
  return async (step) => {
    await step.average({ gradients });
    await step.commit(() => void done.push(step.number));
  };
};

test('a step in which a rank is lost is done again in the next world, and what is committed stays', async () => {
  const done: number[] = [];
  const changes: [number, string, number][] = [];
  const onChange: ElasticTrainerOptions['onChange'] = ({ world, cause, step }) => changes.push([world.size, cause.message, step]);
  const worlds: World[] = [{ votes: [undefined, lost()] }, { size: 4, rank: 3, averages: [lost()] }, { votes: [undefined, false] }, {}];
  const trainer = new Trainer(worlds, undefined, { onChange });
  await trainer.run({ steps: 4, batch: 64 }, counted(done));
  assert.deepEqual(done, [0, 1, 2, 3]);
  assert.equal(trainer.step, 4);
  assert.deepEqual(changes, [
    [4, 'rank 1 was lost', 1],
    [3, 'rank 1 was lost', 1],
    [3, 'a rank was lost while the ranks voted on a step', 2],
  ]);
  // It tells what it has, and it has a state.
  assert.deepEqual(
    trainer.engines.map(({ sync_ }) => [sync_?.step, sync_?.lacks]),
    [
      [0, false],
      [1, false],
      [1, false],
      [2, false],
    ],
  );
  assert.deepEqual(trainer.engines[0]?.calls, ['all_gather', 'split -1', 'sync', 'average', 'vote', 'average', 'vote', 'leave']);
  assert.equal(trainer.world?.size, 3);
});

test('what runs in each world runs before the state comes, and again in the next world where it fails', async () => {
  const worlds: number[] = [];
  const done: number[] = [];
  const onWorld: ElasticTrainerOptions['onWorld'] = async (world) => {
    worlds.push(world.size);
    await world.broadcast(new Int32Array(1), 0);
    if (worlds.length === 2) throw lost();
  };
  const trainer = new Trainer([{ votes: [undefined, lost()] }, { size: 4 }, { size: 5 }], undefined, { onWorld });
  await trainer.run({ steps: 2, batch: 64 }, counted(done));
  assert.deepEqual(
    [worlds, done],
    [
      [3, 4, 5],
      [0, 1],
    ],
  );
  assert.deepEqual(trainer.engines[0]?.calls.slice(0, 4), ['broadcast', 'all_gather', 'split -1', 'sync']);
  assert.deepEqual(trainer.engines[1]?.calls, ['broadcast', 'leave']);
  // A world that it is in already is not new.
  await trainer.run({ steps: 3, batch: 64 }, counted(done));
  assert.deepEqual([worlds.length, done], [3, [0, 1, 2]]);
});

test('the batch is divided among the ranks, and weighed by it; gradients of no sample count nothing', async () => {
  for (const [rank, first, count] of [
    [2, 2, 1],
    [4, 4, 0],
  ] as const) {
    const parts: number[][] = [];
    const trainer = new Trainer([{ size: 5, rank }]);
    gradients.fill(Infinity);
    await trainer.run({ steps: 1, batch: 4 }, async (step) => {
      parts.push([step.number, step.first, step.count]);
      await step.average({ gradients });
      await step.commit(() => undefined);
    });
    assert.deepEqual(parts, [[0, first, count]]);
    const request = trainer.engines[0]?.averaged[0];
    assert.deepEqual([request?.weight, request?.totalWeight], [count, 4]);
    assert.deepEqual([...gradients], Array(4).fill(count === 0 ? 0 : Infinity));
  }
});

test('the state that comes is told before the next step, with its values', async () => {
  const values = '{"a":["i64","-7"],"b":["u64","18446744073709551615"],"c":["double","3fb999999999999a"],"d":["text","x \\"y\\"\\n"]}';
  const seen: unknown[] = [];
  const trainer = new Trainer([{ synced: { taken: true, step: 5, values } }], undefined, {
    onState: (step) => seen.push(step, ...trainer.values),
  });
  await trainer.run({ steps: 6, batch: 8 }, async (step) => {
    seen.push(step.number);
    await step.commit(() => undefined);
  });
  assert.deepEqual(seen, [5, ['a', -7n], ['b', 18446744073709551615n], ['c', 0.1], ['d', 'x "y"\n'], 5]);
  assert.equal(trainer.values.toText(), values);
});

test('values are written as native ranks write them', () => {
  const values = new StateValues();
  values.set('name', 'ü').set('a', 1n).set('rate', -2);
  assert.equal(values.toText(), '{"a":["i64","1"],"name":["text","ü"],"rate":["double","c000000000000000"]}');
  assert.throws(() => values.take('{"a":["another type","1"]}'), { code: 'protocol_error' });
});

test('a state that was overwritten in part is asked for again', async () => {
  const trainer = new Trainer([{ syncFails: lost() }, {}]);
  await trainer.run({ steps: 1, batch: 8 }, counted([]));
  assert.deepEqual(
    trainer.engines.map(({ sync_ }) => sync_?.lacks),
    [false, true],
  );
});

test('a mistake of the program ends the run, and this side leaves', async () => {
  const mistake = new Error('a mistake');
  const inApply = async (step: Step): Promise<void> => step.commit(() => Promise.reject(mistake));
  const twice = async (step: Step): Promise<void> => {
    await step.commit(() => undefined);
    await step.commit(() => undefined);
  };
  for (const [step, wanted] of [
    [() => Promise.reject(mistake), mistake],
    [inApply, mistake],
    [async () => undefined, { code: 'invalid_argument', message: /without a call of Step.commit/ }],
    [twice, { code: 'invalid_argument', message: /a second time/ }],
  ] as const) {
    const trainer = new Trainer([{}, {}]);
    await assert.rejects(trainer.run({ steps: 2, batch: 8 }, step), (error) => {
      if (wanted instanceof Error) return error === wanted;
      assert.match((error as Error).message, wanted.message);
      return (error as RingletError).code === wanted.code;
    });
    assert.equal(trainer.engines.length, 1);
    assert.equal(trainer.engines[0]?.calls.at(-1), 'leave');
    assert.equal(trainer.world, undefined);
    // Where the program's function has thrown, nobody knows what it has changed.
    await trainer.run({ steps: 2, batch: 8 }, counted([]));
    assert.equal(trainer.engines[1]?.sync_?.lacks, step === inApply);
  }
});

test('it does not join again where that is of no use', async () => {
  const other = new MismatchError('rank 2 has other tensors', 2);
  for (const [worlds, wanted, options] of [
    [[{ isElastic: false, votes: [] as RingletError[], averages: [lost()] }], { code: 'peer_lost' }],
    [[{ averages: [lost()] }], { code: 'peer_lost' }, { rejoin: false }],
    [[{ syncFails: other }], { code: 'mismatch' }],
    [[{ averages: [other] }], { code: 'mismatch' }],
    [[{ syncFails: new MismatchError('rank 1 has other tensors', 1) }], { code: 'mismatch' }],
    [[{ averages: [lost()] }, new AuthenticationError('another token')], { code: 'authentication' }],
    [
      [{ averages: [lost()] }, lost(), new Timeout('nobody answers')],
      { code: 'peer_lost', message: /^rank 1 was lost; .*nobody answers$/ },
    ],
    [[new Timeout('nobody answers')], { code: 'timed_out' }],
    [Array.from({ length: 3 }, () => ({ size: 4, guests: 2, syncFails: new MismatchError('rank 3', 3) })), { code: 'mismatch' }],
    [[{ isSharded: true }], { code: 'invalid_argument', message: /in shards/ }],
    [
      [{ plan: [2n, 9n] }],
      { code: 'mismatch', message: /ranks are to train 2 steps of 9 samples, and .* rank 2, is to train 2 steps of 8 samples;/ },
    ],
    [[{ plan: [3n, 8n] }], { code: 'mismatch', message: /are to train 3 steps of 8 samples/ }],
  ] as const) {
    const trainer = new Trainer(worlds, undefined, options);
    await assert.rejects(trainer.run({ steps: 2, batch: 8 }, counted([])), wanted);
  }
});

test('another guest that trains something else is as good as lost', async () => {
  const done: number[] = [];
  const trainer = new Trainer([{ size: 4, guests: 2, syncFails: new MismatchError('rank 3 has other tensors', 3) }, {}]);
  await trainer.run({ steps: 2, batch: 8 }, counted(done));
  assert.deepEqual(done, [0, 1]);
});

test('a native rank that has joined and trains something else is as good as lost', async () => {
  const done: number[] = [];
  const failure = new MismatchError('rank 1 has other tensors', 1);
  const trainer = new Trainer([{ begun: [true, false], syncFails: failure }, { begun: [true] }]);
  await trainer.run({ steps: 2, batch: 8 }, counted(done));
  assert.deepEqual(done, [0, 1]);
  const differing = new Trainer([{ begun: [true, true], syncFails: failure }, {}]);
  await assert.rejects(differing.run({ steps: 2, batch: 8 }, counted([])), { code: 'mismatch' });
});

test('it can leave at any time, and train again', async () => {
  const trainer = new Trainer([{ averages: [lost()] }, {}]);
  const training = trainer.run({ steps: 2, batch: 8 }, counted([]));
  const ended = assert.rejects(training, { code: 'cancelled' });
  await new Promise((resolve) => setTimeout(resolve, 5));
  await trainer.leave();
  await ended;
  await trainer.run({ steps: 2, batch: 8 }, counted([]));
  assert.equal(trainer.step, 2);
});

test('a group that is not elastic does without votes', async () => {
  const trainer = new Trainer([{ isElastic: false, guests: 0 }]);
  await trainer.run({ steps: 1, batch: 8 }, counted([]));
  assert.deepEqual(trainer.engines[0]?.calls, ['all_gather', 'sync', 'average']);
});

test('plans and options that are none are refused', async () => {
  assert.throws(() => new Trainer([], { '': new Float32Array(1) } as never));
  assert.throws(() => new Trainer([], undefined, { average: { weight: 1 } as never }), { message: /average\.weight/ });
  const trainer = new Trainer([{}]);
  await assert.rejects(trainer.run({ steps: 1, batch: 0 }, counted([])), { code: 'invalid_argument' });
  await assert.rejects(trainer.run({ steps: -1, batch: 1 }, counted([])), { code: 'invalid_argument' });
});
