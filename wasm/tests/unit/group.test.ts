import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Engine, EngineMemory, Operation, WorldState } from '../../src/engine.js';
import { AbortError, InvalidArgument, PeerLost } from '../../src/errors.js';
import { Group } from '../../src/group.js';
import { SGD } from '../../src/optimizers.js';
import { Tensor } from '../../src/tensors.js';

/** An engine that records its operations and answers with zeros. */
class RecordingEngine implements Engine {
  readonly operations: Operation[] = [];
  readonly seat = { rank: 1, size: 3, guests: 1, elastic: false, epoch: 4 };
  readonly traffic = { sent: 0, received: 0 };
  memory: EngineMemory | undefined;
  left: number[] = [];
  forgotten: number[] = [];
  answer: (operation: Operation) => Promise<Uint8Array | undefined> = async ({ output }) =>
    output === undefined || output.at !== undefined ? undefined : new Uint8Array(output.shape.reduce((a, b) => a * b, 1) * 4);

  run(operation: Operation): Promise<Uint8Array | undefined> {
    this.operations.push(operation);
    return this.answer(operation);
  }
  async average(): Promise<void> {}
  async applyFsdp(): Promise<undefined> {}
  async sync(): Promise<{ taken: boolean; step: number; values: string }> {
    return { taken: false, step: 0, values: '{}' };
  }
  async vote({ mine }: { mine: boolean }): Promise<boolean> {
    return mine;
  }
  async split(): Promise<undefined> {
    return undefined;
  }
  async placement(): Promise<{ ring: number[]; text: string }> {
    return { ring: [0, 1, 2], text: '' };
  }
  async algorithm(): Promise<undefined> {
    return undefined;
  }
  async forget(optimizer: number): Promise<void> {
    this.forgotten.push(optimizer);
  }
  async leave(group: number): Promise<void> {
    this.left.push(group);
  }
  async worldState(): Promise<WorldState> {
    return { failure: undefined, lineage: 0n, doors: ['', ''] };
  }
  async revoke(): Promise<void> {}
  async close(): Promise<void> {}
}

function make(): { engine: RecordingEngine; group: Group } {
  const engine = new RecordingEngine();
  return { engine, group: new Group(engine, { group: 7, rank: 1, size: 3 }) };
}

const floats = (count: number): Float32Array => new Float32Array(count);

test('results have the shape that the operation gives them', async () => {
  const { engine, group } = make();
  const matrix = new Tensor(floats(8), { shape: [4, 2] });
  assert.equal((await group.allSum(floats(5))).length, 5);
  assert.deepEqual((await group.allMax(matrix)).shape, [4, 2]);
  assert.deepEqual((await group.reduceScatter('sum', matrix)).shape, [1, 2]);
  assert.deepEqual((await group.reduceScatter('prod', matrix, { counts: [0, 3, 1] })).shape, [3, 2]);
  assert.deepEqual(engine.operations.at(-1)?.op, 'prod');
  assert.deepEqual((await group.sumScatter(matrix, { counts: [1, 3, 0] })).shape, [3, 2]);
  assert.deepEqual((await group.allGather(matrix)).shape, [12, 2]);
  assert.deepEqual((await group.allGather(new Tensor(floats(1), { shape: [] }))).shape, [3]);
  assert.deepEqual((await group.allGather(matrix, { counts: [1, 4, 0] })).shape, [5, 2]);
  assert.deepEqual((await group.gather(matrix, 1))?.shape, [12, 2]);
  assert.equal(await group.gather(matrix, 0), undefined);
  assert.equal(await group.reduce('sum', matrix, 2), undefined);
  assert.deepEqual((await group.scatter(new Tensor(floats(6), { shape: [3, 2] }), 1)).shape, [1, 2]);
  assert.deepEqual((await group.scatter(matrix, 0)).shape, [4, 2]);
  assert.deepEqual((await group.allToAll(new Tensor(floats(6), { shape: [6] }))).shape, [6]);
  assert.deepEqual((await group.allToAll(matrix, { sendCounts: [4, 0, 0], receiveCounts: [1, 2, 3] })).shape, [6, 2]);
  assert.equal((await group.recv(6, 'f32', 0)).length, 6);
  assert.deepEqual((await group.recv([2, 3], 'f32', 0)).shape, [2, 3]);
  assert.deepEqual((await group.recvLike(matrix, 0)).shape, [4, 2]);
  assert.equal(engine.operations.find(({ kind, peer }) => kind === 'scatter' && peer === 0)?.input, undefined);
  assert.ok(engine.operations.every((operation) => operation.group === 7));
});

test('operations are started by the call, in its order', () => {
  const { engine, group } = make();
  void group.allSum(floats(1));
  void group.barrier({ stream: 3, timeout: 20 });
  void group.send(floats(2), 0);
  assert.deepEqual(
    engine.operations.map(({ kind, stream, timeout }) => [kind, stream, timeout]),
    [
      ['all_reduce', 0, undefined],
      ['barrier', 3, 20],
      ['send', 0, undefined],
    ],
  );
});

test('a result goes where the caller says', async () => {
  const { engine, group } = make();
  const into = floats(4);
  assert.equal(await group.allSum(floats(4), { into }), into);
  assert.deepEqual(engine.operations[0]?.output?.at, new Uint8Array(into.buffer));
  await assert.rejects(group.allSum(floats(4), { into: floats(3) }), /the result is f32 \(4,\), but `into` is f32 \(3,\)/);
  await assert.rejects(group.allSum(floats(4), { into: new Float64Array(4) }), { name: 'InvalidArgument' });
});

test('wrong arguments are refused before anything is started', async () => {
  const { engine, group } = make();
  const refused = (promise: Promise<unknown>, pattern: RegExp): Promise<void> =>
    assert.rejects(promise, { name: 'InvalidArgument', message: pattern });
  await refused(group.allSum([1] as never), /neither a typed array nor a Tensor/);
  await refused(group.allSum(floats(1), { stream: 1024 }), /1024 is no stream/);
  await refused(group.allSum(floats(1), { timeout: 0 }), /a timeout of 0 ms is none/);
  await refused(group.allReduce('mean' as never, floats(1)), /'mean' is no reduction/);
  await refused(group.allGather(floats(1), { counts: [1] }), /counts has 1 numbers, but the group has 3 ranks/);
  await refused(group.allGather(floats(1), { counts: [1, -1, 1] }), /counts has -1/);
  await refused(group.allToAll(floats(3), { sendCounts: [1, 1, 1] }), /needs both/);
  await refused(group.sumScatter(new Tensor(floats(1), { shape: [] })), /a scalar has no axis 0/);
  await refused(group.broadcast(floats(1), 0.5), /0\.5 is no rank/);
  await refused(group.split(0.5), /0\.5 is no color/);
  await refused(group.recv(2, 'f33' as never, 0), /'f33' is no dtype/);
  const average = (communicationType: unknown): Promise<unknown> =>
    group.averageGradients({ a: floats(1) }, { communicationType: communicationType as never });
  await refused(average('f33'), /'f33' is no dtype/);
  await refused(average({ blocks: 'int3' }), /'int3' is no format of blocks; there are int8, int4/);
  await refused(average({ blocks: 'int8', leastElements: -1 }), /leastElements is -1/);
  const fsdp = (reduceDtype: unknown): Promise<unknown> =>
    group.fsdpApplyGradients({ a: floats(1) }, { a: floats(1) }, new SGD(0.1), { reduceDtype: reduceDtype as never });
  await refused(fsdp('f33'), /'f33' is no dtype/);
  await refused(fsdp({ blocks: 'int3' }), /'int3' is no format of blocks/);
  const shards = (...shardWeights: number[]): Promise<unknown> =>
    group.fsdpApplyGradients({ a: floats(1) }, { a: floats(1) }, new SGD(0.1), { shardWeights });
  await refused(shards(1, 2), /shardWeights has 2 numbers, but the group has 3 ranks; give one for each/);
  await refused(shards(), /shardWeights has 0 numbers/);
  await refused(shards(1, 1, 1, 1), /shardWeights has 4 numbers/);
  await shards(1, 2, 1);
  assert.deepEqual(engine.operations, []);
});

test('a signal ends the wait, and says what goes on', async () => {
  const { engine, group } = make();
  engine.answer = () => new Promise(() => undefined);
  const controller = new AbortController();
  const waiting = group.allSum(floats(1), { signal: controller.signal });
  controller.abort('enough');
  await assert.rejects(waiting, (error: Error) => {
    assert.equal(error.name, 'AbortError');
    assert.equal(error.cause, 'enough');
    assert.match(error.message, /the wait for all_reduce was aborted; the operation goes on.*leave\(\)/);
    return true;
  });
  await assert.rejects(group.barrier({ signal: controller.signal }), /barrier was not started/);
  assert.equal(engine.operations.length, 1);
});

test('a result in the memory of the module is freed where the call fails or nobody waits for it', async () => {
  const lent = new Set<number>();
  const buffer = new ArrayBuffer(64);
  const memory = {
    buffer,
    allocate: (): number => {
      const pointer = 16 * (1 + lent.size);
      lent.add(pointer);
      return pointer;
    },
    release: (pointer: number): void => void lent.delete(pointer),
  };
  const engine = new RecordingEngine();
  engine.memory = memory;
  const group = new Group(engine, { group: 7, rank: 1, size: 3 });
  const input = group.alloc('f32', 2);
  assert.equal(lent.size, 1);
  engine.answer = async () => {
    throw new PeerLost('rank 0 was lost');
  };
  for (let call = 0; call < 1000; ++call) {
    await assert.rejects(group.allSum(input), PeerLost);
    await assert.rejects(group.allSum(input, { stream: -1 }), InvalidArgument);
    await assert.rejects(group.allSum(input, { signal: AbortSignal.abort() }), AbortError);
    assert.equal(lent.size, 1);
  }
  let end = (): void => undefined;
  engine.answer = () => new Promise((resolve) => (end = () => resolve(undefined)));
  const controller = new AbortController();
  const waiting = group.allSum(input, { signal: controller.signal });
  controller.abort();
  await assert.rejects(waiting, AbortError);
  assert.equal(lent.size, 2, 'the operation goes on, and writes there');
  end();
  await new Promise(setImmediate);
  assert.equal(lent.size, 1);
});

test('a group is left once', async () => {
  const { engine, group } = make();
  await Promise.all([group.leave(), group.leave()]);
  assert.deepEqual(engine.left, [7]);
});

test('an optimizer that the program has dropped is forgotten by the engine', { timeout: 30_000 }, async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const { engine, group } = make();
  const step = (optimizer: SGD): Promise<unknown> => group.fsdpApplyGradients({ w: floats(3) }, { w: floats(3) }, optimizer);
  const kept = new SGD(0.1);
  await step(kept);
  await step(kept);
  await step(new SGD(0.1));
  while (engine.forgotten.length === 0) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  assert.deepEqual(engine.forgotten, [kept.next().id + 1]);
  await step(kept);
});
