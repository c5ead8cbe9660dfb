import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserPlatform } from '../../src/browser_platform.js';
import { LocalEngine } from '../../src/core/local_engine.js';
import type { JoinRequest } from '../../src/engine.js';
import type { RingletModule } from '../../src/core/module.js';
import type { Platform } from '../../src/platform.js';

/** A module that starts whatever it is asked to, and notes the timeouts as it gets them: as an int32. */
class TimedModule {
  readonly timeouts: number[] = [];
  readonly HEAPU8 = new Uint8Array(64);
  readonly #note = (timeout: number): number => {
    this.timeouts.push(timeout | 0);
    return 0;
  };
  readonly lent = new Set<number>();
  #last = 0;
  _ringlet_allocate = (): number => {
    this.lent.add(++this.#last);
    return this.#last;
  };
  _ringlet_release = (pointer: number): void => void this.lent.delete(pointer);
  _ringlet_world_of_one = (): number => 5;
  _ringlet_world_group = (): number => 1;
  _ringlet_leave = (): number => 6;
  _ringlet_error_rank = (): number => -1;
  _ringlet_error_text = (): number => 0;
  _ringlet_bytes_sent = (): number => 0;
  _ringlet_bytes_received = (): number => 0;
  readonly groups = new Set([1, 2]);
  _ringlet_group_size = (group: number): number => (this.groups.has(group) ? 1 : -1);
  _ringlet_group_along_ring = (): number => 0;
  _ringlet_group_placement = (): number => 8;
  _ringlet_group_algorithm = (): number => 0;
  _ringlet_group_leave = (group: number): number => Number(!this.groups.delete(group));
  _ringlet_group_rank = (): number => 0;
  _ringlet_vote = (_ticket: number, _group: number, timeout: number): number => this.#note(timeout);
  _ringlet_split = (_ticket: number, _group: number, _stream: number, timeout: number): number => this.#note(timeout);
  _ringlet_collective = (_ticket: number, _group: number, _stream: number, timeout: number): number => this.#note(timeout);
}

async function engineWith(module: TimedModule, onUncaught: Platform['onUncaught'] = () => () => undefined): Promise<LocalEngine> {
  // A module without any imports or exports.
  const empty = await WebAssembly.compile(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  const platform = { compile: async () => empty, onUncaught } as unknown as Platform;
  return LocalEngine.make(
    platform,
    async () => module as unknown as RingletModule,
    undefined,
    false,
    () => undefined,
  );
}

test('a timeout that is too long for the module is the longest that it knows', async () => {
  for (const [timeout, wanted] of [
    [undefined, 0],
    [1e-9, 1],
    [2.5, 3],
    [0x7fffffff, 0x7fffffff],
    [2 ** 32, 0x7fffffff],
    [2 ** 32 + 1, 0x7fffffff],
    [1e12, 0x7fffffff],
  ] as const) {
    const module = new TimedModule();
    const engine = await engineWith(module);
    // None of them ends.
    void engine.vote({ group: 1, mine: true, trains: false, timeout });
    void engine.split({ group: 1, color: 0, key: 0, stream: 1, timeout });
    void engine.run({ kind: 'barrier', group: 1, stream: 2, timeout });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(module.timeouts, [wanted, wanted, wanted], `${timeout} ms`);
  }
});

test('shapes of more than 32 bits are refused, and leave the group usable', async () => {
  const module = new TimedModule();
  const engine = await engineWith(module);
  for (const shape of [
    [2 ** 32 + 4, 0],
    [0, 2 ** 32],
  ]) {
    const input = { dtype: 'f32', shape, at: new Uint8Array(0) } as const;
    const output = { dtype: 'f32', shape, at: undefined } as const;
    const refused = engine.run({ kind: 'all_reduce', op: 'sum', group: 1, stream: 0, timeout: undefined, input, output });
    await assert.rejects(refused, { name: 'InvalidArgument', message: /429496729\d|4294967300 rows or elements are more than/ });
  }
  assert.deepEqual(module.timeouts, []);
  assert.equal(module.lent.size, 0);
  // Would wait for an operation that never ends.
  await engine.leave(1);
});

test('a group that has been left says so whatever it is asked', async () => {
  const module = new TimedModule();
  const engine = await engineWith(module);
  await engine.join({ port: 0 } as JoinRequest);
  assert.deepEqual((await engine.placement(2)).ring, [0]);
  assert.equal(await engine.algorithm(2, 'nothing', 4), undefined);
  await engine.leave(2);
  const part = { name: 'InvalidArgument', message: /has been left/ };
  await assert.rejects(engine.placement(2), part);
  await assert.rejects(engine.algorithm(2, 'all_reduce', 4), part);
  await engine.leave(1);
  const world = { name: 'Cancelled', message: /has been left; join again/ };
  for (const group of [1, 2]) {
    await assert.rejects(engine.placement(group), world);
    await assert.rejects(engine.algorithm(group, 'all_reduce', 4), world);
  }
});

test('an error that nobody catches ends the groups of a Worker, and neither those of a page nor one that the program handles', async () => {
  const scope = new EventTarget();
  const { addEventListener, removeEventListener } = scope;
  Object.assign(globalThis, { addEventListener: addEventListener.bind(scope), removeEventListener: removeEventListener.bind(scope) });
  const fail = async (type: string): Promise<void> => {
    scope.dispatchEvent(new Event(type, { cancelable: true }));
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const join = async (): Promise<LocalEngine> => {
    const engine = await engineWith(new TimedModule(), browserPlatform.onUncaught);
    await engine.join({ port: 0 } as JoinRequest);
    return engine;
  };
  for (const type of ['error', 'unhandledrejection']) {
    const engine = await join();
    const handle = (event: Event): void => event.preventDefault();
    scope.addEventListener(type, handle);
    await fail(type);
    await engine.placement(1);
    scope.removeEventListener(type, handle);
    await fail(type);
    await assert.rejects(engine.placement(1), { name: 'Cancelled' });
  }
  Object.assign(globalThis, { document: {} });
  const engine = await join();
  await fail('error');
  await engine.placement(1);
  for (const name of ['document', 'addEventListener', 'removeEventListener']) Reflect.deleteProperty(globalThis, name);
});
